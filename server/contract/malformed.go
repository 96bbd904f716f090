package contract

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxPointerInText limits the length of a pointer in a detail, in bytes. Line and column are always there.
const maxPointerInText = 256

func malformed(detail string) error { return &MalformedError{Detail: detail} }

// lineAndColumn returns where a byte of a text is, from 1.
func lineAndColumn(text []byte, offset int64) (line, column int) {
	before := text[:min(offset, int64(len(text)))]
	lineStart := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[lineStart:]) + 1
}

// position describes where a byte of the body is, for people and for programs.
func position(body []byte, offset int64) string {
	line, column := lineAndColumn(body, offset)
	return fmt.Sprintf("At line %d, column %d (byte %d)", line, column, offset)
}

// syntaxError describes where and why the decoder stopped.
func syntaxError(body []byte, decoder *jsontext.Decoder, err error) error {
	offset, pointer, reason := explainSyntax(body, decoder, err)
	where := ""
	if pointer != "" && len(pointer) <= maxPointerInText {
		where = fmt.Sprintf(", at %s", pointer)
	}
	return malformed(fmt.Sprintf("%s%s: %s. Send exactly one JSON object in UTF-8.",
		position(body, offset), where, reason))
}

// explainSyntax returns where the decoder stopped and why. The decoder's own message is not used, because it repeats
// submitted values.
func explainSyntax(
	text []byte, decoder *jsontext.Decoder, err error,
) (offset int64, pointer jsontext.Pointer, reason string) {
	offset = decoder.InputOffset()
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset, pointer = syntactic.ByteOffset, syntactic.JSONPointer
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return offset, pointer, "a member name is repeated"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), offset >= int64(len(text)):
		return offset, pointer, "the body ends inside the JSON object"
	}
	isInString := bytes.ContainsRune(text[min(decoder.InputOffset(), offset):offset], '"')
	return offset, pointer, reasonOf(text[offset:], isInString)
}

// reasonOf returns what is wrong with the beginning of a text, as far as it shows that.
func reasonOf(rest []byte, isInString bool) string {
	first, _ := utf8.DecodeRune(rest)
	next, _ := utf8.DecodeRune(bytes.TrimLeft(rest[1:], " \t\r\n"))
	if first == ',' && (next == '}' || next == ']') {
		return "there is a comma before the closing bracket; remove it"
	}
	for _, known := range []struct{ characters, reason string }{
		{",}]", "a value is missing, or the closing bracket does not match the opening one"},
		{"'`“”", `names and strings must be in double quotes (")`},
		{"/#", "JSON has no comments"},
		{`\`, "an escape sequence in a string is invalid in JSON or is half of a surrogate pair"},
		{`"{[`, "a comma or a colon is missing before this"},
	} {
		if strings.ContainsRune(known.characters, first) {
			return known.reason
		}
	}
	switch {
	case first >= utf8.RuneSelf:
		return "this character is not allowed here or is not valid UTF-8"
	case first > ' ':
		return "not valid JSON: names and strings must be in double quotes; other values are true, false, null and " +
			"numbers; numbers are decimal, without a plus sign or leading zeros"
	case isInString:
		return fmt.Sprintf(`a string contains an unescaped control character; write \u%04x instead`, first)
	default:
		return "this character is not allowed here; outside strings, white space is spaces, tabs and line breaks"
	}
}

// CheckJSON returns an error unless a text is one JSON value. The error has the position and the reason, and repeats no
// value.
func CheckJSON(text []byte) error {
	decoder := jsontext.NewDecoder(bytes.NewReader(text))
	_, err := decoder.ReadValue()
	if err == nil {
		if _, err = decoder.ReadToken(); errors.Is(err, io.EOF) {
			return nil
		}
	}
	offset, _, reason := explainSyntax(text, decoder, err)
	line, column := lineAndColumn(text, offset)
	return fmt.Errorf("line %d, column %d: %s", line, column, reason)
}
