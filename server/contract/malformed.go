package contract

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxPointerInText limits the length of a pointer in a detail, in bytes. Line and column are always there.
const maxPointerInText = 256

func malformed(detail string) error { return &MalformedError{Detail: detail} }

// position describes where a byte of the body is, for people and for programs.
func position(body []byte, offset int64) string {
	before := body[:min(offset, int64(len(body)))]
	lineStart := bytes.LastIndexByte(before, '\n') + 1
	return fmt.Sprintf("At line %d, column %d (byte %d)",
		bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(before[lineStart:])+1, offset)
}

// syntaxError describes where and why the decoder stopped. The decoder's own message is not used, because it repeats
// submitted values.
func syntaxError(body []byte, decoder *jsontext.Decoder, err error) error {
	offset, where := decoder.InputOffset(), ""
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset = syntactic.ByteOffset
		if at := syntactic.JSONPointer; at != "" && len(at) <= maxPointerInText {
			where = fmt.Sprintf(", at %s", at)
		}
	}
	var reason string
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		reason = "a member name is repeated"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		reason = "the body ends inside the JSON object"
	default:
		reason = syntaxReason(body, decoder, offset)
	}
	return malformed(fmt.Sprintf("%s%s: %s. Send exactly one JSON object in UTF-8.",
		position(body, offset), where, reason))
}

// syntaxReason describes what is wrong at a byte, as far as the byte shows it.
func syntaxReason(body []byte, decoder *jsontext.Decoder, offset int64) string {
	if offset >= int64(len(body)) {
		return "the body ends inside the JSON object"
	}
	rest := body[offset:]
	// After a name, an object has an odd number of names and values.
	kind, count := decoder.StackIndex(decoder.StackDepth())
	awaitsValue := kind == '{' && count%2 == 1
	switch c := rest[0]; {
	case c == ',', isClosing(c):
		return misplacedPunctuation(rest, awaitsValue)
	case isNumberPart(body[:offset], rest):
		return "not valid JSON: numbers are decimal, without a plus sign or leading zeros"
	case isLetter(c):
		return bareWord(kind == '{' && !awaitsValue)
	case awaitsValue && (c == '"' || isDigit(c)):
		return "a colon is missing between a name and its value"
	case c == '"', c == '{', c == '[':
		return "a comma is missing between two values"
	default:
		isInString := bytes.ContainsRune(body[min(decoder.InputOffset(), offset):offset], '"')
		return misplacedCharacter(rest, isInString)
	}
}

// isNumberPart reports whether a text continues a number, or begins with a sign that numbers do not have.
func isNumberPart(before, text []byte) bool {
	if text[0] == '+' {
		return len(text) > 1 && isDigit(text[1])
	}
	return len(before) > 0 && isDigit(before[len(before)-1]) && (isLetter(text[0]) || isDigit(text[0]))
}

func bareWord(isName bool) string {
	if isName {
		return `a member name must be in double quotes (")`
	}
	return "not valid JSON: strings must be in double quotes; other values are true, false, null and numbers"
}

func misplacedPunctuation(rest []byte, awaitsValue bool) string {
	switch {
	case rest[0] == ',' && isClosing(afterSpace(rest[1:])):
		return "there is a comma before the closing bracket; remove it"
	case rest[0] == ',', awaitsValue:
		return "a value is missing"
	default:
		return "the closing bracket does not match the opening one"
	}
}

func misplacedCharacter(rest []byte, isInString bool) string {
	switch c := rest[0]; {
	case c == '\'', c == '`', bytes.HasPrefix(rest, []byte("“")), bytes.HasPrefix(rest, []byte("”")):
		return `names and strings must be in double quotes (")`
	case c == '/', c == '#':
		return "JSON has no comments"
	case c == '\\':
		return "an escape sequence in a string is invalid in JSON or half of a surrogate pair"
	case c < ' ' && !isInString:
		return "outside strings, only spaces, tabs and line breaks are white space"
	case c < ' ':
		return "a string contains an unescaped control character; write " + escapeOf(c)
	case c >= utf8.RuneSelf:
		return "this character is not allowed here or is not valid UTF-8"
	default:
		return "not valid JSON"
	}
}

// escapeOf returns how a control character is written in a string.
func escapeOf(c byte) string {
	switch c {
	case '\t':
		return `\t for a tab`
	case '\r':
		return `\r for a carriage return`
	case '\n':
		return `\n for a line feed`
	default:
		return fmt.Sprintf(`\u%04x instead`, c)
	}
}

func isClosing(c byte) bool { return c == '}' || c == ']' }

// afterSpace returns the first byte that is not white space; 0 if there is none.
func afterSpace(text []byte) byte {
	if text = bytes.TrimLeft(text, " \t\r\n"); len(text) > 0 {
		return text[0]
	}
	return 0
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

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
	offset := decoder.InputOffset()
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset = syntactic.ByteOffset
	}
	before := text[:min(offset, int64(len(text)))]
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Errorf("line %d, column %d: %s", 1+bytes.Count(before, []byte("\n")), column,
		syntaxReason(text, decoder, offset))
}
