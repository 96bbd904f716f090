package server

import (
	"bytes"
	"io"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/labstack/echo/v4"
)

// validate holds the request against the contract and finds all violations at once. The handler gets the very value
// that was validated.
//
// Formats need no registration: the contract states the rule of each as a pattern, so that callers have it too.
func validate(op operation) echo.MiddlewareFunc {
	first := openapi3filter.Options{
		AuthenticationFunc:      openapi3filter.NoopAuthenticationFunc,
		KeepValidatedValue:      true,
		SkipSettingDefaults:     true,
		SchemaValidationOptions: []openapi3.SchemaValidationOption{openapi3.DisableSchemaErrorDetails()},
	}
	all := first
	all.MultiError = true
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
			request.Body = io.NopCloser(bytes.NewReader(body))
			request.Header.Set(echo.HeaderContentType, jsonMediaType)
			options := &all
			if sent.isCrowded() {
				options = &first
			}
			input := &openapi3filter.RequestValidationInput{Request: request, Route: route, Options: options}
			err = openapi3filter.ValidateRequest(request.Context(), input)
			if err := violated(op, sent, err); err != nil {
				return err
			}
			return next(c)
		}
	}
}
