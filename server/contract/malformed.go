package contract

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxPointerInText is the length, in bytes, up to which a sentence repeats a pointer. Line and column say where, too.
const maxPointerInText = 256

func malformed(detail string) error { return &MalformedError{Detail: detail} }

// position says where a byte of the body stands, for people and for programs.
func position(body []byte, offset int64) string {
	before := body[:min(offset, int64(len(body)))]
	lineStart := bytes.LastIndexByte(before, '\n') + 1
	return fmt.Sprintf("At line %d, column %d (byte %d)",
		bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(before[lineStart:])+1, offset)
}

// syntaxError says where the decoder of a body stopped and why. The decoder's own text is not used: it repeats what was
// sent.
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
		reason = "a member name occurs twice"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		reason = "the body ends before its JSON object does"
	default:
		reason = syntaxReason(body, decoder, offset)
	}
	return malformed(fmt.Sprintf("%s%s: %s. Send exactly one JSON object in UTF-8.",
		position(body, offset), where, reason))
}

// syntaxReason says what is wrong at a byte, as far as the byte tells.
func syntaxReason(body []byte, decoder *jsontext.Decoder, offset int64) string {
	if offset >= int64(len(body)) {
		return "the body ends before its JSON object does"
	}
	rest := body[offset:]
	// An object has had an odd number of names and values where the value of a name comes next.
	kind, count := decoder.StackIndex(decoder.StackDepth())
	awaitsValue := kind == '{' && count%2 == 1
	switch c := rest[0]; {
	case c == ',', isClosing(c):
		return misplacedPunctuation(rest, awaitsValue)
	case isLetter(c):
		return bareWord(kind == '{' && !awaitsValue)
	case awaitsValue && (c == '"' || isDigit(c)):
		return "a colon is missing between a name and its value"
	case c == '"', c == '{', c == '[':
		return "a comma is missing between two values"
	default:
		return misplacedCharacter(rest)
	}
}

func bareWord(isName bool) string {
	if isName {
		return `a member name stands in double quotes (")`
	}
	return "this is not valid JSON: strings stand in double quotes, other values are true, false, null and numbers"
}

func misplacedPunctuation(rest []byte, awaitsValue bool) string {
	switch {
	case rest[0] == ',' && isClosing(afterSpace(rest[1:])):
		return "a comma stands before the closing bracket; leave it out"
	case rest[0] == ',', awaitsValue:
		return "a value is missing"
	default:
		return "the closing bracket does not fit the opening one"
	}
}

func misplacedCharacter(rest []byte) string {
	switch c := rest[0]; {
	case c == '\'', c == '`', bytes.HasPrefix(rest, []byte("“")), bytes.HasPrefix(rest, []byte("”")):
		return `names and strings stand in double quotes (")`
	case c == '/', c == '#':
		return "JSON has no comments"
	case c == '\\':
		return "an escape sequence in a string is not one of JSON, or is half of a surrogate pair"
	case c < ' ':
		return `a string has a control character as it stands; write \n for a line feed`
	case c >= utf8.RuneSelf:
		return "this character may not stand here, or is not valid UTF-8"
	default:
		return "this is not valid JSON"
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
