package server

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json/jsontext"

	"example.com/providerd/gen/api"
)

// rule orders the rules that a value can break; of several, the first is reported.
type rule int

const (
	rulePresence rule = iota
	ruleType
	ruleEmpty
	ruleLength
	ruleEnum
	rulePattern
	ruleOther
)

// violation is a broken rule in the words of the answer. It holds nothing of the value.
type violation struct {
	rule   rule
	code   api.ViolationCode
	detail string
}

// at is the violation as it is answered, at a place of the body.
func (v violation) at(place jsontext.Pointer) api.Violation {
	return api.Violation{Pointer: string(place), Code: v.code, Detail: v.detail}
}

// describe finds the words for a rule of the contract that a value breaks.
func describe(broken *openapi3.SchemaError) violation {
	schema := broken.Schema
	switch {
	case broken.Value == nil:
		return violation{rulePresence, api.ViolationCodeNull, "must not be null"}
	case !hasType(schema, broken.Value):
		return violation{ruleType, api.ViolationCodeType, describeType(broken)}
	}
	switch broken.SchemaField {
	case "minLength":
		return violation{ruleEmpty, api.ViolationCodeEmpty, "must not be empty"}
	case "maxLength":
		return violation{
			ruleLength, api.ViolationCodeTooLong, fmt.Sprintf("must be at most %d characters", *schema.MaxLength),
		}
	case "enum":
		return violation{ruleEnum, api.ViolationCodeEnum, "must be one of: " + allowedValues(schema)}
	case "pattern", "not":
		return describePattern(broken)
	default:
		return violation{ruleOther, api.ViolationCodeType, "breaks the rule " + broken.SchemaField + " of the contract"}
	}
}

func missing() violation {
	return violation{rulePresence, api.ViolationCodeRequired, "is required"}
}

func nulCharacter() violation {
	return violation{rulePattern, api.ViolationCodeNul, "must not contain the character U+0000"}
}

// unknownField names the field that was meant, unless that is "".
func unknownField(meant string) violation {
	detail := "is not a field of this request; leave it out"
	if meant != "" {
		detail = fmt.Sprintf("is not a field of this request; did you mean %s?", meant)
	}
	return violation{ruleOther, api.ViolationCodeUnknownField, detail}
}

// patternRule is the extension x-violation of the contract: what a value that does not match the pattern is told.
type patternRule struct {
	Code   api.ViolationCode `json:"code"`
	Detail string            `json:"detail"`
	// Type is what a value of another type is told.
	Type     string `json:"type"`
	EachLine bool   `json:"each_line"`
}

// describePattern names a broken pattern by the format of the value, by x-violation, or else by U+0000, which is what
// every other pattern of the contract refuses.
func describePattern(broken *openapi3.SchemaError) violation {
	value, _ := broken.Value.(string)
	switch broken.Schema.Format {
	case "uuid":
		return violation{
			rulePattern, api.ViolationCodeInvalidUUID,
			"must be a UUID: 8-4-4-4-12 hexadecimal digits, such as 3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01",
		}
	case "email":
		return violation{
			rulePattern, api.ViolationCodeInvalidEmail,
			"must be an e-mail address in ASCII, such as admin@example.com, without quotes, comments or an address literal",
		}
	}
	known, ok := patternRuleOf(broken.Schema)
	switch {
	case !ok, known.Code == api.ViolationCodeBlank && strings.ContainsRune(value, 0):
		return nulCharacter()
	case known.EachLine:
		known.Detail = fmt.Sprintf("line %d: %s", firstBadLine(broken.Schema, value), known.Detail)
	}
	return violation{rulePattern, known.Code, known.Detail}
}

func patternRuleOf(schema *openapi3.Schema) (patternRule, bool) {
	var known patternRule
	text, err := json.Marshal(schema.Extensions["x-violation"])
	if err != nil || json.Unmarshal(text, &known) != nil {
		return patternRule{}, false
	}
	return known, known.Code != ""
}

// firstBadLine returns the number, from 1, of the first line that breaks the schema of the whole text.
func firstBadLine(schema *openapi3.Schema, text string) int {
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if line == "" || schema.VisitJSON(line) != nil {
			break
		}
	}
	return number
}

// describeType says what type a value must have, with an example where the contract has one.
func describeType(broken *openapi3.SchemaError) string {
	if known, ok := patternRuleOf(broken.Schema); ok && known.Type != "" {
		return known.Type
	}
	detail := "must be " + typeName(broken.Schema)
	if _, quoted := broken.Value.(string); quoted {
		detail += ", without quotes around it"
	}
	return detail
}

func hasType(schema *openapi3.Schema, value any) bool {
	switch value.(type) {
	case string:
		return schema.Type.Permits(openapi3.TypeString)
	case bool:
		return schema.Type.Permits(openapi3.TypeBoolean)
	case json.Number:
		return schema.Type.Permits(openapi3.TypeNumber) || schema.Type.Permits(openapi3.TypeInteger)
	case []any:
		return schema.Type.Permits(openapi3.TypeArray)
	default:
		return schema.Type.Permits(openapi3.TypeObject)
	}
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
