package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxNesting is how many objects and arrays may stand inside each other, the body itself counted in.
const maxNesting = 64

// object is what is known of a body besides its value.
type object struct {
	// names are those of the members in their order.
	names []string
	// values counts the members and the elements of their lists.
	values int
	// nul has the places of the strings and member names with U+0000.
	nul []jsontext.Pointer
}

// readObject tells whether body is exactly one JSON object (RFC 8259) in clean UTF-8, without a byte order mark, a
// member name that occurs twice, a lone surrogate, deep nesting, or anything after the object. Otherwise it returns an
// error with the byte offset and, where there is one, the pointer.
func readObject(body []byte) (object, error) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(body))
	kind := decoder.PeekKind()
	switch {
	case len(bytes.TrimLeft(body, " \t\r\n")) == 0:
		return object{}, malformed("The body is empty. Send one JSON object.")
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return object{}, malformed("The body begins with a byte order mark. Leave it out.")
	case kind != '{' && kind != 0:
		return object{}, malformed("The body is not a JSON object. Send exactly one.")
	}
	// A string can have U+0000 only in this form, so that most bodies need not be searched.
	result, err := readMembers(decoder, bytes.Contains(body, []byte(`\u0000`)))
	if err != nil {
		return object{}, err
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return object{}, malformed(fmt.Sprintf("At byte %d something follows the JSON object. Send exactly one.",
			decoder.InputOffset()))
	}
	return result, nil
}

// readMembers reads one object to its end.
func readMembers(decoder *jsontext.Decoder, mayHaveNUL bool) (object, error) {
	var result object
	for {
		token, err := decoder.ReadToken()
		if err != nil {
			return object{}, malformedAt(decoder, err)
		}
		depth := decoder.StackDepth()
		if depth == 0 {
			return result, nil
		}
		if depth > maxNesting {
			return object{}, malformed(fmt.Sprintf("At byte %d nesting is deeper than %d levels.",
				decoder.InputOffset(), maxNesting))
		}
		if depth <= 2 {
			result.values++
		}
		if _, length := decoder.StackIndex(depth); depth == 1 && length%2 == 1 {
			result.names = append(result.names, token.String())
		}
		if mayHaveNUL && token.Kind() == '"' && strings.ContainsRune(token.String(), 0) {
			result.nul = append(result.nul, decoder.StackPointer())
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
