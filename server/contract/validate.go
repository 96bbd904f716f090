package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json/jsontext"

	"example.com/providerd/gen/model"
)

// MaxBodyBytes limits the size of a body: 1 MiB.
const MaxBodyBytes = 1 << 20

// Validate returns the violations that a server would list in its response to a body; none if the body is valid. It
// returns an error if the body is too large or not a single well-formed JSON object.
func (d *Document) Validate(ctx context.Context, operationID string, body []byte) ([]Violation, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("validate body: %w", err)
	}
	op, ok := d.Operation(operationID)
	if !ok {
		return nil, fmt.Errorf("the contract has no operation %s", operationID)
	}
	if len(body) > MaxBodyBytes {
		return nil, fmt.Errorf("is larger than %d bytes as JSON", MaxBodyBytes)
	}
	sent, err := op.Read(body)
	if err == nil {
		err = op.Validate(sent, false)
	}
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		return invalid.Violations, nil
	}
	return nil, err
}

// Validate returns an *InvalidError if a body breaks rules of the contract. If lenient, fields that the operation
// does not have are ignored, except misplaced parameters.
func (o *Operation) Validate(sent Object, lenient bool) error {
	err := visit(o.body, sent.members)
	if err == nil && len(sent.unknown) == 0 && !sent.mayHaveNUL {
		return nil
	}
	if invalid := violated(o.violations(sent, lenient)); invalid != nil {
		return invalid
	}
	if err != nil {
		return fmt.Errorf("validate body: %w", err)
	}
	return nil
}

// RequestSchema returns the schema of an operation's body; nil if the contract has no such operation.
func (d *Document) RequestSchema(operationID string) *openapi3.Schema {
	op, ok := d.Operation(operationID)
	if !ok {
		return nil
	}
	return op.body
}

// HeaderRule returns a function that reports whether a value of a header, which the operation must have, is valid.
func (o *Operation) HeaderRule(name string) func(value string) bool {
	schema := o.parameters.GetByInAndName(openapi3.ParameterInHeader, name).Schema.Value
	return func(value string) bool { return visit(schema, value) == nil }
}

const maxViolations = 1000

// MalformedError means that a body is not a single well-formed JSON object.
type MalformedError struct {
	// Detail is for the caller. It repeats nothing that was sent except names in a pointer.
	Detail string
}

func (e *MalformedError) Error() string { return e.Detail }

// InvalidError means that a body breaks rules of the contract.
type InvalidError struct {
	// Detail is for the caller.
	Detail string
	// Violations holds as many as a response may list, and Length is the length of the list as JSON, in bytes.
	Violations []Violation
	Length     int64
}

func (e *InvalidError) Error() string { return e.Detail }

// Violation is a rule of the contract that a body breaks, as a response lists it. It repeats no value.
type Violation = model.Violation

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
		if more := o.body.AdditionalProperties.Has; more == nil || *more {
			return
		}
		for i, name := range sent.unknown {
			if parameter, _ := MisplacedParameter(name); lenient && parameter == "" {
				continue
			}
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

// OmitRemedy follows the predicate of a field that is null. It is wrong where omitted fields keep their values.
const OmitRemedy = "; omit it for the default or a generated value"

// ofValue yields what is wrong with a field as a whole. Like the functions below, it reports whether to continue.
func (f field) ofValue(sent Object, yield func(Violation) bool) bool {
	if value, ok := sent.members[f.name]; ok {
		broken := firstBroken(f.rules, value)
		if broken != nil && value == nil && !f.required {
			return yield(at(f.pointer(), Violation{Code: codeNull, Detail: "must not be null" + OmitRemedy}))
		}
		return broken == nil || yield(at(f.pointer(), describe(broken)))
	}
	return !f.required || yield(at(f.pointer(), Violation{Code: codeRequired, Detail: "is required"}))
}

func (f field) ofElements(sent Object, yield func(Violation) bool) bool {
	list, _ := sent.members[f.name].([]any)
	if f.items == nil {
		return true
	}
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

// at returns the violation with its place, the subject of its sentence unless it is too long to be a typo of a field.
func at(place jsontext.Pointer, violation Violation) Violation {
	subject, end := "This", "."
	if len(place) <= maxSimilarLength {
		subject = "`" + string(place[1:]) + "`"
	}
	if strings.HasSuffix(violation.Detail, "?") {
		end = ""
	}
	violation.Pointer, violation.Detail = string(place), subject+" "+violation.Detail+end
	return violation
}

func (f field) pointer() jsontext.Pointer { return jsontext.Pointer("").AppendToken(f.name) }

// violated returns the error for a body, with as many of its violations as a response may list; nil for none.
func violated(violations iter.Seq[Violation]) *InvalidError {
	invalid, more := &InvalidError{Length: int64(len("[]"))}, false
	for violation := range violations {
		const room = maxViolationBytes - len("[,]")
		if len(invalid.Violations) == 0 && lengthOf(violation) > room {
			// It moves to the nearest enclosing place.
			violation.Detail = "Inside this value, at a pointer too long to list: " + violation.Detail
			for lengthOf(violation) > room {
				violation.Pointer = string(jsontext.Pointer(violation.Pointer).Parent())
			}
		}
		length := invalid.Length + int64(len(",")+lengthOf(violation))
		if more = len(invalid.Violations) == maxViolations || length > maxViolationBytes; more {
			break
		}
		invalid.Violations, invalid.Length = append(invalid.Violations, violation), length
	}
	invalid.Detail = "The body has 1 violation. Fix the entry in errors and send the body again."
	switch count := len(invalid.Violations); {
	case count == 0:
		return nil
	case more:
		invalid.Detail = fmt.Sprintf(
			"The body has more violations than the %d listed in errors. Fix these and send the body again.", count)
	case count > 1:
		invalid.Detail = fmt.Sprintf("The body has %d violations. Fix every entry in errors and send the body again.", count)
	}
	return invalid
}

func lengthOf(violation Violation) int {
	text, err := json.Marshal(violation)
	if err != nil {
		return maxViolationBytes
	}
	return len(text)
}

// firstBroken returns the first rule of a schema that a value breaks; nil if there is none.
func firstBroken(schema *openapi3.Schema, value any) *openapi3.SchemaError {
	broken, _ := errors.AsType[*openapi3.SchemaError](visit(schema, value))
	return broken
}

// visit validates a value. Formats need no validators: the contract states each as a pattern, for callers too.
func visit(schema *openapi3.Schema, value any) error {
	return schema.VisitJSON(value, openapi3.DisableSchemaErrorDetails()) //nolint:wrapcheck // The caller adds what it is.
}
