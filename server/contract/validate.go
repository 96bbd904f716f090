package contract

import (
	"context"
	"errors"
	"fmt"

	"github.com/getkin/kin-openapi/openapi3"

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

// HeaderRule returns a function that reports whether a value of a header is valid. It panics if the operation does not
// have the header.
func (o *Operation) HeaderRule(name string) func(value string) bool {
	schema := o.parameters.GetByInAndName(openapi3.ParameterInHeader, name).Schema.Value
	return func(value string) bool { return visit(schema, value) == nil }
}

// maxViolations limits how many violations a response lists.
const maxViolations = 1000

// MalformedError means that a body is not a single well-formed JSON object.
type MalformedError struct {
	// Detail is for the caller. It repeats nothing that was sent except names in a pointer.
	Detail string
}

// Error returns the detail.
func (e *MalformedError) Error() string { return e.Detail }

// InvalidError means that a body breaks rules of the contract.
type InvalidError struct {
	// Detail is for the caller.
	Detail string
	// Violations holds as many as a response may list, and Length is the length of the list as JSON, in bytes.
	Violations []Violation
	Length     int64
}

// Error returns the detail.
func (e *InvalidError) Error() string { return e.Detail }

// Violation is a rule of the contract that a body breaks, as a response lists it. It repeats no value.
type Violation = model.Violation
