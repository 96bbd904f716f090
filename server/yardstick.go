package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"example.com/providerd/gen/api"
	"example.com/providerd/store"
)

// NewEchoYardstick is the least that a server of JSON with Echo does: it reads a body and answers it. Providerd is
// measured against it.
func NewEchoYardstick(contract *Contract) http.Handler {
	router := echo.New()
	for _, op := range contract.operations {
		router.POST(contract.baseURL+op.route.Path, func(c echo.Context) error {
			var body map[string]json.RawMessage
			if err := c.Bind(&body); err != nil {
				return fmt.Errorf("read body: %w", err)
			}
			return c.JSON(http.StatusCreated, body)
		})
	}
	return router
}

// NewValidationYardstick is a Server without tokens, request ids, log and store: it validates a request, fills it with
// the defaults and answers the record. Providerd is measured against it.
func NewValidationYardstick(contract *Contract) http.Handler {
	router := echo.New()
	middlewares, bodies := map[string][]echo.MiddlewareFunc{}, newBodies()
	for _, op := range contract.operations {
		middlewares[op.id] = []echo.MiddlewareFunc{validate(op, bodies)}
	}
	api.RegisterHandlersWithOptions(router, api.NewStrictHandler(forgetful{}, nil), api.RegisterHandlersOptions{
		BaseURL: contract.baseURL, OperationMiddlewares: middlewares,
	})
	return router
}

// forgetful answers records that it does not store.
type forgetful struct{}

// ProvidersOauth2Create answers the record that would be stored.
func (forgetful) ProvidersOauth2Create(
	_ context.Context, request api.ProvidersOauth2CreateRequestObject,
) (api.ProvidersOauth2CreateResponseObject, error) {
	record := store.OAuth2Provider{OAuth2Settings: FromAPIOAuth2(*request.Body)}
	record.Name = request.Body.Name
	return api.ProvidersOauth2Create201JSONResponse{Body: ToAPIOAuth2(record)}, nil
}

// ProvidersWorkspaceDirectoryCreate answers the record that would be stored.
func (forgetful) ProvidersWorkspaceDirectoryCreate(
	_ context.Context, request api.ProvidersWorkspaceDirectoryCreateRequestObject,
) (api.ProvidersWorkspaceDirectoryCreateResponseObject, error) {
	record := store.WorkspaceDirectoryProvider{WorkspaceDirectorySettings: FromAPIWorkspaceDirectory(*request.Body)}
	record.Name = request.Body.Name
	return api.ProvidersWorkspaceDirectoryCreate201JSONResponse{Body: ToAPIWorkspaceDirectory(record)}, nil
}
