// Command yardstick is the server that bench compares providerd with: Echo with the generated server and kin-openapi's
// validation. It stores nothing. It is a program of its own, and shares no code with the server, so that an optimization
// of the server, such as other patterns in the cache that kin-openapi has for each process, does not make it faster, too.
//
// Start with newYardstick.
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"example.com/providerd/gen/api"
	"example.com/providerd/gen/contract"
	"example.com/providerd/gen/model"
)

func main() {
	handler, err := newYardstick()
	if err != nil {
		fmt.Fprintln(os.Stderr, "yardstick:", err)
		os.Exit(1)
	}
	fmt.Println("listening on", httptest.NewServer(handler).URL)
	select {}
}

// newYardstick returns the generated server behind kin-openapi's validator, as in its documentation.
func newYardstick() (http.Handler, error) {
	contract, err := openapi3.NewLoader().LoadFromData(contract.YAML())
	if err != nil {
		return nil, fmt.Errorf("read contract: %w", err)
	}
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

// forgetful responds with records but stores nothing. It has only the operation that is measured.
type forgetful struct{ api.StrictServerInterface }

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

func valueOf[T any](sent *T, fallback T) T {
	if sent != nil {
		return *sent
	}
	return fallback
}
