package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json/jsontext"
)

const sampleUUID = "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"

// The codes of violations that are found by comparing a request with stored records.
const (
	CodeTaken   = "taken"
	CodeDiffers = "differs"
)

// The codes of violations of the contract, in addition to the codes of x-violation.
const (
	codeBlank        = "blank"
	codeEmpty        = "empty"
	codeEnum         = "enum"
	codeInvalidEmail = "invalid_email"
	codeInvalidUUID  = "invalid_uuid"
	codeNul          = "nul"
	codeNull         = "null"
	codeRequired     = "required"
	codeTooLong      = "too_long"
	codeType         = "type"
	codeUnknownField = "unknown_field"
)

// ViolationCodes returns all codes of violations, in the order in which the contract lists them.
func ViolationCodes() []string {
	return []string{
		codeRequired, codeNull, codeType, codeEmpty, codeBlank, codeTooLong, codeEnum, codeInvalidUUID, codeInvalidEmail,
		"invalid_duration", "invalid_uri", codeNul, codeUnknownField, CodeTaken, CodeDiffers,
	}
}

// describe returns the violation of a rule by a value, with a predicate for its place as Detail. It repeats no value.
func describe(broken *openapi3.SchemaError) Violation {
	schema := broken.Schema
	switch {
	case broken.Value == nil:
		return Violation{Code: codeNull, Detail: "must not be null"}
	case visit(&openapi3.Schema{Type: schema.Type}, broken.Value) != nil:
		return Violation{Code: codeType, Detail: describeType(broken)}
	}
	switch broken.SchemaField {
	case "minLength":
		return Violation{Code: codeEmpty, Detail: "must not be empty"}
	case "maxLength":
		return Violation{
			Code: codeTooLong, Detail: fmt.Sprintf("must be at most %d characters long", *schema.MaxLength),
		}
	case "enum":
		return Violation{Code: codeEnum, Detail: "must be one of: " + allowedValues(schema)}
	case "pattern", "not":
		return describePattern(broken)
	default:
		return Violation{
			Code: codeType, Detail: "breaks the rule " + broken.SchemaField + " of openapi.yaml",
		}
	}
}

func nulCharacter() Violation {
	return Violation{Code: codeNul, Detail: "must not contain the character U+0000"}
}

// patternRule is the extension x-violation of the contract: the violation of a pattern.
type patternRule struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// Type is the predicate for a value of the wrong type.
	Type     string `json:"type"`
	EachLine bool   `json:"each_line"`
}

// describePattern describes a broken pattern by the format, by x-violation, or else as U+0000, all that others refuse.
func describePattern(broken *openapi3.SchemaError) Violation {
	value, _ := broken.Value.(string)
	switch broken.Schema.Format {
	case "uuid":
		detail := "must be a UUID: 8-4-4-4-12 hexadecimal digits, such as " + sampleUUID
		if value == "" && broken.Schema.Nullable {
			detail += ", or null for none"
		}
		return Violation{Code: codeInvalidUUID, Detail: detail}
	case "email":
		return Violation{
			Code: codeInvalidEmail,
			Detail: "must be an ASCII e-mail address such as admin@example.com, without white space, quotes, comments or an " +
				"address literal, and with xn-- for an international domain",
		}
	}
	known, ok := patternRuleOf(broken.Schema)
	switch {
	case !ok, known.Code == codeBlank && strings.ContainsRune(value, 0):
		return nulCharacter()
	case known.EachLine:
		number, line := firstBadLine(broken.Schema, value)
		_, next, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case line == "":
			known.Detail = "is empty; remove it"
		case strings.Contains(next, "://"):
			known.Detail = "has several URIs; put each on a line of its own, without a separator"
		}
		known.Detail = fmt.Sprintf("line %d %s", number, known.Detail)
	}
	return Violation{Code: known.Code, Detail: known.Detail}
}

func patternRuleOf(schema *openapi3.Schema) (patternRule, bool) {
	var known patternRule
	text, err := json.Marshal(schema.Extensions["x-violation"])
	if err != nil || json.Unmarshal(text, &known) != nil {
		return patternRule{}, false
	}
	return known, known.Code != ""
}

// firstBadLine returns the first line that breaks the schema, and its number, from 1.
func firstBadLine(schema *openapi3.Schema, text string) (number int, line string) {
	for line = range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if line == "" || schema.VisitJSON(line) != nil {
			break
		}
	}
	return number, line
}

func describeType(broken *openapi3.SchemaError) string {
	if known, ok := patternRuleOf(broken.Schema); ok && known.Type != "" {
		if list, _ := broken.Value.([]any); len(list) > 0 {
			return known.Type + ", not a list of objects; send only the URI of each"
		}
		return known.Type
	}
	detail := "must be " + typeName(broken.Schema)
	text, isString := broken.Value.(string)
	begins := map[string]string{
		openapi3.TypeBoolean: "tf", openapi3.TypeArray: "[", openapi3.TypeObject: "{", openapi3.TypeInteger: "0",
	}
	switch kind := jsontext.Value(text).Kind(); {
	case isString && kind != 0 && strings.ContainsRune(begins[broken.Schema.Type.Slice()[0]], rune(kind)):
		detail += " without quotes"
	case isString && broken.Schema.Type.Is(openapi3.TypeArray):
		detail += `, such as ["` + sampleUUID + `"]`
	}
	return detail
}

func typeName(schema *openapi3.Schema) string {
	switch {
	case schema.Type.Is(openapi3.TypeBoolean):
		return "true or false"
	case schema.Type.Is(openapi3.TypeArray):
		return "a list"
	case schema.Type.Is(openapi3.TypeObject):
		return "an object"
	default:
		return "a " + strings.Join(schema.Type.Slice(), " or a ")
	}
}

func allowedValues(schema *openapi3.Schema) string {
	values := make([]string, len(schema.Enum))
	for i, value := range schema.Enum {
		values[i] = fmt.Sprint(value)
	}
	return strings.Join(values, ", ")
}

// maxPointerInText limits the length of a pointer in a detail, in bytes. Line and column are always there.
const maxPointerInText = 256

func malformed(detail string) error { return &MalformedError{Detail: detail} }

// lineAndColumn returns where a byte of a text is, from 1.
func lineAndColumn(text []byte, offset int64) (line, column int) {
	before := text[:min(offset, int64(len(text)))]
	lineStart := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[lineStart:]) + 1
}

// follows returns where a text continues after a byte, apart from white space.
func follows(text []byte, offset int64) int64 {
	return int64(len(text) - len(bytes.TrimLeft(text[offset:], " \t\r\n")))
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
	isLetter := func(r rune) bool { return r < utf8.RuneSelf && unicode.IsLetter(r) }
	if isLetter(rune(text[offset])) {
		// The decoder may stop within a word.
		offset = int64(len(bytes.TrimRightFunc(text[:offset], isLetter)))
	}
	isInString := bytes.ContainsRune(text[min(decoder.InputOffset(), offset):offset], '"')
	return offset, pointer, reasonOf(text[offset:], isInString)
}

// reasonOf returns what is wrong with the beginning of a text, as far as it shows that.
func reasonOf(rest []byte, isInString bool) string {
	first, _ := utf8.DecodeRune(rest)
	next, _ := utf8.DecodeRune(rest[follows(rest, 1):])
	if first == ',' && (next == '}' || next == ']') {
		return "there is a comma before the closing bracket; remove it"
	}
	for _, known := range []struct{ characters, reason string }{
		{",}]", "a value is missing, or the closing bracket does not match the opening one"},
		{"'`´‘’‚“”„«»″＂", `names and strings must be in straight double quotes ("), not in other quotation marks`},
		{"/#", "JSON has no comments; remove it"},
		{`\`, "an escape sequence in a string is invalid in JSON or is half of a surrogate pair"},
		{`"{[;=`, "a name, a comma or a colon is missing here"},
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
			"numbers, not True, None, undefined or NaN; numbers are decimal, without a plus sign or leading zeros"
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
	_, err := decoder.ReadToken()
	for err == nil && decoder.StackDepth() > 0 {
		_, err = decoder.ReadToken()
	}
	offset, _, reason := explainSyntax(text, decoder, err)
	if err == nil {
		if offset = follows(text, offset); offset == int64(len(text)) {
			return nil
		}
		reason = "something follows the JSON value"
	}
	line, column := lineAndColumn(text, offset)
	return fmt.Errorf("line %d, column %d: %s", line, column, reason)
}
