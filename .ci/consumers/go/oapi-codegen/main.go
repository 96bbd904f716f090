package main

import (
	"context"
	"encoding/json"

	api "example.com/providerd/ci/consumers/generated/oapi-codegen"
	"example.com/providerd/ci/consumers/go/steps"
)

func main() {
	client, err := api.NewClientWithResponses(steps.BaseURL(), api.WithRequestEditorFn(steps.Authorize))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	steps.Run(func(uris, key string, validateOnly bool) (any, error) {
		params := &api.ProvidersOauth2CreateParams{ValidateOnly: &validateOnly}
		if key != "" {
			params.IdempotencyKey = &key
		}
		body := api.OAuth2ProviderRequest{Name: steps.Name, AuthorizationFlow: steps.Flow, RedirectUris: &uris}
		response, err := client.ProvidersOauth2CreateWithResponse(ctx, params, body)
		if err != nil {
			return nil, err
		}
		if response.ApplicationproblemJSON400 != nil {
			return response.ApplicationproblemJSON400, nil
		}
		if validateOnly {
			return response.JSON200, nil
		}
		return response.JSON201, nil
	}, func() (any, error) {
		var body api.WorkspaceDirectoryProviderRequest
		if err := json.Unmarshal([]byte(steps.Directory), &body); err != nil {
			return nil, err
		}
		response, err := client.ProvidersWorkspaceDirectoryCreateWithResponse(ctx, nil, body)
		if err != nil {
			return nil, err
		}
		return response.JSON201, nil
	})
}
