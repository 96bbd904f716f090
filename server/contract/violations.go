package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json/jsontext"
)

// maxViolationBytes is the length, in a response, of all violations that it lists: 1 MiB.
const maxViolationBytes = 1 << 20

// violations finds all that is wrong with a body, one for each place, in the order of the contract's fields and then
// that of the body. Each is found only once the previous one is taken, so a caller that stops early pays for no more.
func (o *Operation) violations(sent Object, lenient bool) iter.Seq[Violation] {
	return func(yield func(Violation) bool) {
		for _, field := range o.fields {
			if !field.ofValue(sent, yield) || !field.ofElements(sent, yield) || !field.ofText(sent, yield) {
				return
			}
		}
		if lenient || !o.isClosed() {
			return
		}
		for i, name := range sent.unknown {
			found := Violation{Code: codeUnknownField, Detail: notAField}
			if i < maxSuggestions {
				found.Detail = o.suggestField(name)
			}
			if !yield(at(jsontext.Pointer("").AppendToken(name), found)) {
				return
			}
		}
	}
}

// ofValue yields what is wrong with a field as a whole. Like the following ones, it reports whether to continue.
func (f field) ofValue(sent Object, yield func(Violation) bool) bool {
	if value, ok := sent.members[f.name]; ok {
		broken := firstBroken(f.rules, value)
		return broken == nil || yield(at(f.pointer(), describe(broken)))
	}
	return !f.required || yield(at(f.pointer(), missing()))
}

// ofElements yields what is wrong with the elements of a list.
func (f field) ofElements(sent Object, yield func(Violation) bool) bool {
	list, _ := sent.members[f.name].([]any)
	for i, element := range list {
		broken := firstBroken(f.items, element)
		if broken != nil && !yield(at(f.pointer().AppendToken(strconv.Itoa(i)), describe(broken))) {
			return false
		}
	}
	return true
}

// ofText yields the strings and member names of a free-form object with U+0000, which no pattern can refuse.
func (f field) ofText(sent Object, yield func(Violation) bool) bool {
	if !f.freeForm || !sent.mayHaveNUL {
		return true
	}
	// Names that occur twice are refused before.
	decoder := jsontext.NewDecoder(bytes.NewBuffer(sent.objects[f.name]), jsontext.AllowDuplicateNames(true))
	var last jsontext.Pointer
	for {
		token, err := decoder.ReadToken()
		if err != nil {
			return true
		}
		if token.Kind() != '"' || !strings.ContainsRune(token.String(), 0) {
			continue
		}
		// A member's name and its value have the same pointer.
		place := decoder.StackPointer()
		if place != last && !yield(at(f.pointer()+place, nulCharacter())) {
			return false
		}
		last = place
	}
}

// at is a violation at a place of the body.
func at(place jsontext.Pointer, found Violation) Violation {
	found.Pointer = string(place)
	return found
}

func (f field) pointer() jsontext.Pointer { return jsontext.Pointer("").AppendToken(f.name) }

// violated is the error of a body with violations; nil if there are none.
func violated(violations iter.Seq[Violation]) *InvalidError {
	listed, size, more := listable(violations)
	detail := "The body breaks a rule. Fix the entry of errors and send it again."
	switch count := len(listed); {
	case count == 0:
		return nil
	case more:
		detail = fmt.Sprintf("The body breaks more rules than errors lists, which has the first %d. Fix these and send it "+
			"again.", count)
	case count > 1:
		detail = fmt.Sprintf("The body breaks %d rules. Fix every entry of errors and send it again.", count)
	}
	return &InvalidError{Detail: detail, Violations: listed, Length: int64(size)}
}

// listable takes the first violations, as many as an answer may have. It tells the length of their list in bytes, and
// whether there are more.
func listable(violations iter.Seq[Violation]) (listed []Violation, length int, more bool) {
	length = len("[]")
	for violation := range violations {
		if len(listed) == 0 {
			violation = fitting(violation)
		}
		next := length + len(",") + lengthOf(violation)
		if len(listed) == maxViolations || next > maxViolationBytes {
			return listed, length, true
		}
		listed, length = append(listed, violation), next
	}
	return listed, length, false
}

// fitting moves a violation whose pointer is too long for any answer to the nearest place around it whose is not.
func fitting(violation Violation) Violation {
	const room = maxViolationBytes - len("[,]")
	if lengthOf(violation) <= room {
		return violation
	}
	violation.Detail = "has in it, at a pointer too long to be listed, what breaks this rule: " + violation.Detail
	for lengthOf(violation) > room {
		violation.Pointer = string(jsontext.Pointer(violation.Pointer).Parent())
	}
	return violation
}

// lengthOf is the length of a violation in an answer, in bytes.
func lengthOf(violation Violation) int {
	text, err := json.Marshal(violation)
	if err != nil {
		return maxViolationBytes
	}
	return len(text)
}

// firstBroken finds the rule of a schema that a value breaks, the first of several; nil if it breaks none.
func firstBroken(schema *openapi3.Schema, value any) (first *openapi3.SchemaError) {
	err := visit(schema, value, openapi3.MultiErrors())
	several, ok := errors.AsType[openapi3.MultiError](err)
	if !ok {
		several = openapi3.MultiError{err}
	}
	rules := []string{"minLength", "maxLength", "enum", "pattern", "not"}
	lowest := 0
	for _, err := range several {
		broken, ok := errors.AsType[*openapi3.SchemaError](err)
		if !ok {
			continue
		}
		rank := slices.Index(rules, broken.SchemaField)
		if rank < 0 {
			rank = len(rules)
		}
		if first == nil || rank < lowest {
			first, lowest = broken, rank
		}
	}
	return first
}

// visit checks a value against a schema of a request. Formats need no validator: the contract states the rule of each
// as a pattern, so that callers have it too. Fields that are read-only need none either, because a request has none.
func visit(schema *openapi3.Schema, value any, options ...openapi3.SchemaValidationOption) error {
	options = append(options, openapi3.DisableSchemaErrorDetails())
	return schema.VisitJSON(value, options...) //nolint:wrapcheck // The caller knows what was checked.
}
