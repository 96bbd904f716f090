package server

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

// binder fills the struct that a handler gets with the body that was validated. It matches the names of members
// exactly, as validation did, and leaves out those that the contract does not know.
type binder struct{}

var _ echo.Binder = binder{}

// Bind is called by the generated code, after validate.
func (binder) Bind(into any, c echo.Context) error {
	body, ok := c.Request().Body.(*validBody)
	if !ok {
		return errors.New("bind body: it was not validated")
	}
	text := body.text
	// Nothing holds it here while the request is answered.
	body.text = nil
	// What these options spare was checked while the body was read.
	err := json.Unmarshal(text, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return fmt.Errorf("bind body: %w", err)
	}
	return nil
}

// validBody is a body that was read and is valid.
type validBody struct {
	io.ReadCloser
	text []byte
}
