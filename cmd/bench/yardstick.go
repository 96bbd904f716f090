package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"example.com/providerd/gen/api"
	"example.com/providerd/gen/model"
)

// The yardsticks share no code with the server, so that an optimization of the server does not make them faster, too.

// newEchoYardstick returns the minimal JSON server with Echo: it decodes a body and responds with it.
func newEchoYardstick(contract *openapi3.T) http.Handler {
	router := echo.New()
	for path := range contract.Paths.Map() {
		router.POST(contract.Servers[0].URL+path, func(c echo.Context) error {
			var body map[string]json.RawMessage
			if err := c.Bind(&body); err != nil {
				return fmt.Errorf("read body: %w", err)
			}
			return c.JSON(http.StatusCreated, body)
		})
	}
	return router
}

// newValidationYardstick returns the generated server behind kin-openapi's validator, as in its documentation. It
// responds with records but stores nothing.
func newValidationYardstick(contract *openapi3.T) (http.Handler, error) {
	routes, err := gorillamux.NewRouter(contract)
	if err != nil {
		return nil, fmt.Errorf("parse contract: %w", err)
	}
	router := echo.New()
	router.Use(validateWith(routes))
	api.RegisterHandlersWithBaseURL(router, api.NewStrictHandler(forgetful{}, nil), contract.Servers[0].URL)
	return router, nil
}

func validateWith(routes routers.Router) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			route, parameters, err := routes.FindRoute(c.Request())
			if err != nil {
				return echo.ErrNotFound
			}
			err = openapi3filter.ValidateRequest(c.Request().Context(), &openapi3filter.RequestValidationInput{
				Request:    c.Request(),
				PathParams: parameters,
				Route:      route,
				Options:    &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
			})
			if err != nil {
				return echo.NewHTTPError(http.StatusBadRequest)
			}
			return next(c)
		}
	}
}

// forgetful responds with records but stores nothing.
type forgetful struct{}

// ProvidersOauth2Create responds with the record that would be stored.
func (forgetful) ProvidersOauth2Create(
	_ context.Context, request api.ProvidersOauth2CreateRequestObject,
) (api.ProvidersOauth2CreateResponseObject, error) {
	body := request.Body
	return api.ProvidersOauth2Create201JSONResponse{Body: model.OAuth2Provider{
		PK:                     1,
		Name:                   body.Name,
		AuthenticationFlow:     body.AuthenticationFlow,
		AuthorizationFlow:      body.AuthorizationFlow,
		PropertyMappings:       valueOf(body.PropertyMappings, []uuid.UUID{}),
		Component:              "provider-oauth2-form",
		VerboseName:            "OAuth2/OpenID Provider",
		VerboseNamePlural:      "OAuth2/OpenID Providers",
		MetaModelName:          "providers_oauth2.oauth2provider",
		ClientType:             valueOf(body.ClientType, model.ClientTypeEnumConfidential),
		ClientID:               valueOf(body.ClientID, ""),
		ClientSecret:           valueOf(body.ClientSecret, ""),
		AccessCodeValidity:     valueOf(body.AccessCodeValidity, "minutes=1"),
		AccessTokenValidity:    valueOf(body.AccessTokenValidity, "hours=1"),
		RefreshTokenValidity:   valueOf(body.RefreshTokenValidity, "days=30"),
		IncludeClaimsInIDToken: valueOf(body.IncludeClaimsInIDToken, true),
		SigningKey:             body.SigningKey,
		RedirectUris:           valueOf(body.RedirectUris, ""),
		SubMode:                valueOf(body.SubMode, model.SubModeEnumHashedUserID),
		IssuerMode:             valueOf(body.IssuerMode, model.IssuerModeEnumPerProvider),
		JWKSSources:            valueOf(body.JWKSSources, []uuid.UUID{}),
	}}, nil
}

// ProvidersWorkspaceDirectoryCreate responds with the record that would be stored.
func (forgetful) ProvidersWorkspaceDirectoryCreate(
	_ context.Context, request api.ProvidersWorkspaceDirectoryCreateRequestObject,
) (api.ProvidersWorkspaceDirectoryCreateResponseObject, error) {
	body := request.Body
	const modelName = "providers_workspace_directory.workspacedirectoryprovider"
	return api.ProvidersWorkspaceDirectoryCreate201JSONResponse{Body: model.WorkspaceDirectoryProvider{
		PK:                         1,
		Name:                       body.Name,
		PropertyMappings:           valueOf(body.PropertyMappings, []uuid.UUID{}),
		PropertyMappingsGroup:      valueOf(body.PropertyMappingsGroup, []uuid.UUID{}),
		Component:                  "provider-workspace-directory-form",
		VerboseName:                "Workspace Directory Provider",
		VerboseNamePlural:          "Workspace Directory Providers",
		MetaModelName:              modelName,
		DelegatedSubject:           body.DelegatedSubject,
		Credentials:                body.Credentials,
		Scopes:                     valueOf(body.Scopes, ""),
		ExcludeUsersServiceAccount: valueOf(body.ExcludeUsersServiceAccount, false),
		FilterGroup:                body.FilterGroup,
		UserDeleteAction:           valueOf(body.UserDeleteAction, model.OutgoingSyncDeleteActionDoNothing),
		GroupDeleteAction:          valueOf(body.GroupDeleteAction, model.OutgoingSyncDeleteActionDoNothing),
		DefaultGroupEmailDomain:    body.DefaultGroupEmailDomain,
	}}, nil
}

func valueOf[T any](sent *T, fallback T) T {
	if sent != nil {
		return *sent
	}
	return fallback
}
