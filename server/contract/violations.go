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

// maxViolationBytes limits the length of the violations in a response: 1 MiB.
const maxViolationBytes = 1 << 20

// violations yields what is wrong with a body, at most one violation for each place, in the order of the contract's
// fields and then of the body. It stops working when its caller stops.
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
			violation := Violation{Code: codeUnknownField, Detail: notAField}
			if i < maxSuggestions {
				violation.Detail = o.suggestField(name)
			}
			if !yield(at(jsontext.Pointer("").AppendToken(name), violation)) {
				return
			}
		}
	}
}

// ofValue yields what is wrong with a field as a whole. Like the functions below, it reports whether to continue.
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

// ofText yields the strings and member names of a free-form object that contain U+0000, which no pattern can refuse.
func (f field) ofText(sent Object, yield func(Violation) bool) bool {
	if !f.freeForm || !sent.mayHaveNUL {
		return true
	}
	// Repeated names were refused before.
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

// at returns the violation with its place in the body, which becomes the subject of its sentence.
func at(place jsontext.Pointer, violation Violation) Violation {
	violation.Pointer = string(place)
	violation.Detail = sentence(place, violation.Detail)
	return violation
}

// sentence returns a predicate with its subject, the place. A name too long to be a typo of a field is not repeated.
func sentence(place jsontext.Pointer, predicate string) string {
	subject := "This"
	if len(place) <= maxSimilarLength {
		subject = "`" + string(place[1:]) + "`"
	}
	text := subject + " " + predicate
	if !strings.HasSuffix(text, "?") {
		text += "."
	}
	return text
}

func (f field) pointer() jsontext.Pointer { return jsontext.Pointer("").AppendToken(f.name) }

// violated returns the error for a body with violations; nil if there are none.
func violated(violations iter.Seq[Violation]) *InvalidError {
	listed, size, more := listable(violations)
	detail := "The body has 1 violation. Fix the entry in errors and send it again."
	switch count := len(listed); {
	case count == 0:
		return nil
	case more:
		detail = fmt.Sprintf("The body has more violations than the %d listed in errors. Fix these and send it again.", count)
	case count > 1:
		detail = fmt.Sprintf("The body has %d violations. Fix every entry in errors and send it again.", count)
	}
	return &InvalidError{Detail: detail, Violations: listed, Length: int64(size)}
}

// listable returns as many violations as a response may list, the length of the list in bytes, and whether there are
// more.
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

// fitting moves a violation whose pointer is too long for a response to the nearest enclosing place.
func fitting(violation Violation) Violation {
	const room = maxViolationBytes - len("[,]")
	if lengthOf(violation) <= room {
		return violation
	}
	violation.Detail = "Inside this place, at a pointer too long to list: " + violation.Detail
	for lengthOf(violation) > room {
		violation.Pointer = string(jsontext.Pointer(violation.Pointer).Parent())
	}
	return violation
}

// lengthOf returns the length of a violation in a response, in bytes.
func lengthOf(violation Violation) int {
	text, err := json.Marshal(violation)
	if err != nil {
		return maxViolationBytes
	}
	return len(text)
}

// firstBroken returns the first rule of a schema that a value breaks; nil if there is none.
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

// visit validates a value against a schema. Formats need no validators, because the contract states each as a pattern,
// which callers can use too.
func visit(schema *openapi3.Schema, value any, options ...openapi3.SchemaValidationOption) error {
	options = append(options, openapi3.DisableSchemaErrorDetails())
	return schema.VisitJSON(value, options...) //nolint:wrapcheck // The caller adds what was validated.
}
