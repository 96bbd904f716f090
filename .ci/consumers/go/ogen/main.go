package main

import (
	"context"
	"reflect"

	api "example.com/providerd/ci/consumers/generated/ogen"
	"example.com/providerd/ci/consumers/go/steps"
)

type token struct{}

func (token) Bearer(context.Context, api.OperationName) (api.Bearer, error) {
	return api.Bearer{Token: steps.Token()}, nil
}

// response returns the body of a result; the types of results differ only in their headers.
func response(result any) any {
	return reflect.ValueOf(result).Elem().FieldByName("Response").Addr().Interface()
}

func main() {
	client, err := api.NewClient(steps.BaseURL(), token{})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	steps.Run(func(uris, key string, validateOnly bool) (any, error) {
		params := api.ProvidersOAuth2CreateParams{ValidateOnly: api.NewOptBool(validateOnly)}
		if key != "" {
			params.IdempotencyKey = api.NewOptString(key)
		}
		request := &api.OAuth2ProviderRequest{
			Name: steps.Name, AuthorizationFlow: steps.Flow, RedirectUris: api.NewOptString(uris),
		}
		result, err := client.ProvidersOAuth2Create(ctx, request, params)
		if err != nil {
			return nil, err
		}
		return response(result), nil
	}, func() (any, error) {
		var request api.WorkspaceDirectoryProviderRequest
		if err := request.UnmarshalJSON([]byte(steps.Directory)); err != nil {
			return nil, err
		}
		result, err := client.ProvidersWorkspaceDirectoryCreate(ctx, &request, api.ProvidersWorkspaceDirectoryCreateParams{})
		if err != nil {
			return nil, err
		}
		return response(result), nil
	})
}
