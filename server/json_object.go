package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// maxNesting is how many objects and arrays may stand inside each other, the body itself counted in.
const maxNesting = 64

// checkObject tells whether body is exactly one JSON object (RFC 8259) in clean UTF-8, without a byte order mark, a
// member name that occurs twice, a lone surrogate, deep nesting, or anything after the object. It returns the names of
// the members in their order, or an error with the byte offset and, where there is one, the pointer.
func checkObject(body []byte) ([]string, error) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(body))
	kind := decoder.PeekKind()
	switch {
	case len(bytes.TrimLeft(body, " \t\r\n")) == 0:
		return nil, malformed("The body is empty. Send one JSON object.")
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return nil, malformed("The body begins with a byte order mark. Leave it out.")
	case kind != '{' && kind != 0:
		return nil, malformed("The body is not a JSON object. Send exactly one.")
	}
	names, err := readObject(decoder)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, malformed(fmt.Sprintf("At byte %d something follows the JSON object. Send exactly one.",
			decoder.InputOffset()))
	}
	return names, nil
}

// readObject reads one object to its end and returns the names of its members.
func readObject(decoder *jsontext.Decoder) ([]string, error) {
	var names []string
	for {
		token, err := decoder.ReadToken()
		if err != nil {
			return nil, malformedAt(decoder, err)
		}
		depth := decoder.StackDepth()
		if depth == 0 {
			return names, nil
		}
		if depth > maxNesting {
			return nil, malformed(fmt.Sprintf("At byte %d nesting is deeper than %d levels.",
				decoder.InputOffset(), maxNesting))
		}
		if _, length := decoder.StackIndex(depth); depth == 1 && length%2 == 1 {
			names = append(names, token.String())
		}
	}
}

func malformed(detail string) error {
	return &refusal{slug: malformedJSON, detail: detail}
}

// malformedAt says where the decoder stopped and why. The decoder's own text is not used: it repeats what was sent.
func malformedAt(decoder *jsontext.Decoder, err error) error {
	offset, where := decoder.InputOffset(), ""
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset = syntactic.ByteOffset
		if syntactic.JSONPointer != "" {
			where = fmt.Sprintf(", at %s,", syntactic.JSONPointer)
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
