package server

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// maxPointerInText is the length, in bytes, up to which a sentence repeats a pointer. A byte offset says where, too.
const maxPointerInText = 256

func malformed(detail string) error {
	return &refusal{slug: malformedJSON, detail: detail}
}

// malformedAt says where the decoder stopped and why. The decoder's own text is not used: it repeats what was sent.
func malformedAt(decoder *jsontext.Decoder, err error) error {
	offset, where := decoder.InputOffset(), ""
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset = syntactic.ByteOffset
		if at := syntactic.JSONPointer; at != "" && len(at) <= maxPointerInText {
			where = fmt.Sprintf(", at %s,", at)
		}
	}
	reason := "the body is not valid JSON in UTF-8"
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		reason = "a member name occurs twice"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		reason = "the body ends before its JSON object does"
	}
	return malformed(fmt.Sprintf("At byte %d%s %s. Send exactly one JSON object.", offset, where, reason))
}
