package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/labstack/echo/v4"

	"example.com/providerd/gen/api"
)

// validate holds the request against the contract and finds all violations at once. The handler gets the very value
// that was validated.
func validate(op operation) echo.MiddlewareFunc {
	rules := newRules(op)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			request := c.Request()
			body, err := io.ReadAll(request.Body)
			if err != nil {
				return unreadable(err)
			}
			sent, err := readObject(body)
			if err != nil {
				return err
			}
			if request.Header.Get(idempotencyKeyHeader) != "" {
				if exchangeOf(request.Context()).bodyDigest, err = digest(body); err != nil {
					return err
				}
			}
			route := op.route
			if isLenient(request.Header) {
				route = op.lenientRoute
				c.Response().Header().Set(preferenceAppliedHeader, handlingLenient)
			}
			if err := rules.check(request, route, body, sent); err != nil {
				return err
			}
			return next(c)
		}
	}
}

// rules are those of one operation.
type rules struct {
	op operation
	// first ends at the first violation, all finds every one.
	first, all openapi3filter.Options
}

// newRules prepares the validator. Formats need no registration: the contract states the rule of each as a pattern, so
// that callers have it too.
func newRules(op operation) *rules {
	first := openapi3filter.Options{
		AuthenticationFunc:      openapi3filter.NoopAuthenticationFunc,
		KeepValidatedValue:      true,
		SkipSettingDefaults:     true,
		SchemaValidationOptions: []openapi3.SchemaValidationOption{openapi3.DisableSchemaErrorDetails()},
	}
	all := first
	all.MultiError = true
	return &rules{op: op, first: first, all: all}
}

// check gives the request the body that it holds against the contract, and returns a refusal of what breaks it.
func (r *rules) check(request *http.Request, route *routers.Route, body []byte, sent object) error {
	request.Body = io.NopCloser(bytes.NewReader(body))
	request.Header.Set(echo.HeaderContentType, jsonMediaType)
	options := &r.all
	if sent.isCrowded() {
		options = &r.first
	}
	input := &openapi3filter.RequestValidationInput{Request: request, Route: route, Options: options}
	return violated(r.op, sent, openapi3filter.ValidateRequest(request.Context(), input))
}

// Check returns the violations that the answer to a body would list, for a program that wants to know them before it
// sends anything; none where the body would be taken. Its error says what is wrong with a body that is too large, or is
// not one clean JSON object.
func (c *Contract) Check(ctx context.Context, operationID string, body []byte) ([]api.Violation, error) {
	op, ok := c.operation(operationID)
	if !ok {
		return nil, fmt.Errorf("the contract has no operation %s", operationID)
	}
	if len(body) > maxBodyBytes {
		return nil, fmt.Errorf("it is larger than %d bytes as JSON", maxBodyBytes)
	}
	request, err := http.NewRequestWithContext(ctx, op.route.Method, c.baseURL+op.route.Path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("make request of %s: %w", operationID, err)
	}
	sent, err := readObject(body)
	if err == nil {
		err = newRules(op).check(request, op.route, body, sent)
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
	return bodySchema(op.route.Operation)
}
