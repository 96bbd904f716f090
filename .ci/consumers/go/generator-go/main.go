package main

import (
	"context"
	"encoding/json"

	api "example.com/providerd/ci/consumers/generated/generator-go"
	"example.com/providerd/ci/consumers/go/steps"
)

func main() {
	configuration := api.NewConfiguration()
	configuration.Servers = api.ServerConfigurations{{URL: steps.BaseURL()}}
	client := api.NewAPIClient(configuration).ProvidersApi
	ctx := context.WithValue(context.Background(), api.ContextAccessToken, steps.Token())
	// The version in the npm package decodes only application/json, later ones also problem documents.
	problem := func(err error) (any, error) {
		refused, ok := err.(api.GenericOpenAPIError)
		if !ok {
			return nil, err
		}
		var problem api.Problem
		if err := json.Unmarshal(refused.Body(), &problem); err != nil {
			return nil, err
		}
		return problem, nil
	}
	steps.Run(func(uris, key string, validateOnly bool) (any, error) {
		body := api.NewOAuth2ProviderRequest(steps.Name, steps.Flow.String())
		body.SetRedirectUris(uris)
		request := client.ProvidersOauth2Create(ctx).OAuth2ProviderRequest(*body).ValidateOnly(validateOnly)
		if key != "" {
			request = request.IdempotencyKey(key)
		}
		var record api.OAuth2Provider
		record, _, err := request.Execute()
		if err != nil {
			return problem(err)
		}
		return record, nil
	}, func() (any, error) {
		var body api.WorkspaceDirectoryProviderRequest
		if err := json.Unmarshal([]byte(steps.Directory), &body); err != nil {
			return nil, err
		}
		record, _, err := client.ProvidersWorkspaceDirectoryCreate(ctx).WorkspaceDirectoryProviderRequest(body).Execute()
		return record, err
	})
}
