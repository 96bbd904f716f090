package contract

import (
	"context"
	"errors"
	"fmt"

	"github.com/getkin/kin-openapi/openapi3"
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
// does not have are ignored.
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
