package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"example.com/providerd/server/contract"
	"example.com/providerd/server/listener"
)

// validateBody reads and validates the body. The handler gets exactly the value that was validated.
func validateBody(op *contract.Operation, bodies *bodies) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			reserved := bodies.reserve(c.Request().Context())
			defer reserved.release()
			if err := accept(c, op, reserved); err != nil {
				// The error is handled here, while its memory is reserved.
				c.Error(err)
				return nil
			}
			c.Response().Before(reserved.beginWriting)
			return next(c)
		}
	}
}

// accept replaces the body of a request with its validated text, or returns why the body is refused.
func accept(c echo.Context, op *contract.Operation, reserved *bodyReservation) error {
	request := c.Request()
	body, err := reserved.read(request.Body)
	if err != nil {
		return err
	}
	exchangeOf(request.Context()).body = http.NoBody
	listener.MarkWorking(request.Context())
	defer exchangeOf(request.Context()).spans.validate()()
	return reserved.parse(request.Context(), body, func() error {
		sent, err := op.Read(body)
		if err != nil {
			return err
		}
		lenient := isLenient(request.Header)
		if lenient {
			c.Response().Header().Set(preferenceAppliedHeader, handlingLenient)
		}
		if err := op.Validate(sent, lenient); err != nil {
			return err
		}
		request.Body = &validBody{ReadCloser: http.NoBody, text: body}
		return nil
	})
}

// binder unmarshals the validated body into the struct that a handler gets. It matches member names exactly, as
// validation did, and ignores unknown members.
type binder struct{}

var _ echo.Binder = binder{}

// Bind is called by the generated code, after validateBody.
func (binder) Bind(into any, c echo.Context) error {
	body, ok := c.Request().Body.(*validBody)
	if !ok {
		return errors.New("bind body: not validated")
	}
	text := body.text
	// The memory can be freed while the request is handled.
	body.text = nil
	// Both were checked when the body was read.
	err := json.Unmarshal(text, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return fmt.Errorf("bind body: %w", err)
	}
	return nil
}

// validBody is a body that was read and validated.
type validBody struct {
	io.ReadCloser
	text []byte
}
