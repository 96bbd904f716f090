package contract

import (
	"context"
	"errors"
	"fmt"

	"github.com/getkin/kin-openapi/openapi3"
)

// MaxBodyBytes is the size of the largest body that a server reads: 1 MiB.
const MaxBodyBytes = 1 << 20

// Validate returns the violations that the response to a body would list, for a program that wants to know them before
// it sends anything; none if the body would be accepted. Its error says what is wrong with a body that is too large or
// not one clean JSON object.
func (d *Document) Validate(ctx context.Context, operationID string, body []byte) ([]Violation, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("validate body: %w", err)
	}
	op, ok := d.Operation(operationID)
	if !ok {
		return nil, fmt.Errorf("the contract has no operation %s", operationID)
	}
	if len(body) > MaxBodyBytes {
		return nil, fmt.Errorf("it is larger than %d bytes as JSON", MaxBodyBytes)
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

// Validate returns an *InvalidError if a body breaks rules of the contract. Lenient ignores fields that the operation
// does not have.
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

// HeaderRule returns a function that reports whether a header of the operation may have a value. It panics if the
// operation does not have the header.
func (o *Operation) HeaderRule(name string) func(value string) bool {
	schema := o.parameters.GetByInAndName(openapi3.ParameterInHeader, name).Schema.Value
	return func(value string) bool { return visit(schema, value) == nil }
}
