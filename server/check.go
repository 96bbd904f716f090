package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/getkin/kin-openapi/openapi3"

	"example.com/providerd/gen/api"
)

// Check returns the violations that the answer to a body would list, for a program that wants to know them before it
// sends anything; none where the body would be taken. Its error says what is wrong with a body that is too large, or is
// not one clean JSON object.
func (c *Contract) Check(ctx context.Context, operationID string, body []byte) ([]api.Violation, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("check body: %w", err)
	}
	op, ok := c.operation(operationID)
	if !ok {
		return nil, fmt.Errorf("the contract has no operation %s", operationID)
	}
	if len(body) > maxBodyBytes {
		return nil, fmt.Errorf("it is larger than %d bytes as JSON", maxBodyBytes)
	}
	sent, err := readObject(op, body)
	if err == nil {
		err = op.check(sent, false)
	}
	refused, ok := errors.AsType[*refusal](err)
	switch {
	case ok && refused.slug == validationFailed:
		return refused.violations, nil
	case ok:
		return nil, errors.New(refused.detail)
	default:
		return nil, err
	}
}

// RequestSchema is the schema of an operation's body; nil where the contract has no such operation.
func (c *Contract) RequestSchema(operationID string) *openapi3.Schema {
	op, ok := c.operation(operationID)
	if !ok {
		return nil
	}
	return op.body
}
