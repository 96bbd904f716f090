package contract

import (
	"encoding/json"
	"fmt"
	"strings"

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

// describePattern describes a broken pattern by the format, by x-violation, or else as U+0000, which is all that the
// other patterns of the contract refuse.
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
		if line == "" {
			known.Detail = "is empty; remove it"
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

// describeType returns the predicate for a value of the wrong type.
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
