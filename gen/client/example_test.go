package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/gen/client"
)

func ExampleProviders_CreateOAuth2() {
	baseURL, token, stop := startServer()
	defer stop()

	providers, err := client.New(baseURL, token)
	if err != nil {
		fmt.Println(err)
		return
	}
	record, err := providers.CreateOAuth2(context.Background(), client.OAuth2ProviderRequest{
		Name:              "Intranet",
		AuthorizationFlow: uuid.MustParse("3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(record.PK, record.Name, len(record.ClientSecret.Reveal()))
	// Output: 1 Intranet 128
}

func ExampleProviders_CreateWorkspaceDirectory() {
	baseURL, token, stop := startServer()
	defer stop()

	providers, err := client.New(baseURL, token)
	if err != nil {
		fmt.Println(err)
		return
	}
	record, err := providers.CreateWorkspaceDirectory(context.Background(), client.WorkspaceDirectoryProviderRequest{
		Name:                    "Staff",
		DelegatedSubject:        "admin@example.com",
		Credentials:             client.NewSecretJSON(`{"key": "example"}`),
		DefaultGroupEmailDomain: "example.com",
	}, client.WithIdempotencyKey("staff"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(record.PK, record.Name, record.UserDeleteAction)
	// Output: 1 Staff do_nothing
}

func ExampleError() {
	baseURL, token, stop := startServer()
	defer stop()

	providers, err := client.New(baseURL, token)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = providers.CreateOAuth2(context.Background(), client.OAuth2ProviderRequest{
		Name:              " ",
		AuthorizationFlow: uuid.MustParse("3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"),
		RedirectUris:      new("https://app.example.com/\nlocalhost"),
	})
	if refused, ok := errors.AsType[*client.Error](err); ok && errors.Is(err, client.ErrValidationFailed) {
		if violation, ok := refused.Violation("/name"); ok {
			fmt.Println(violation.Detail)
		}
		for _, violation := range refused.Violations() {
			fmt.Println(violation.Pointer, violation.Code, violation.Code == "invalid_uri")
		}
	}
	// Output:
	// `name` must contain a character other than white space.
	// /name blank false
	// /redirect_uris invalid_uri true
}

func ExampleRedirectURIs() {
	request := client.OAuth2ProviderRequest{
		RedirectUris:        new(client.RedirectURIs("https://app.example.com/callback", "https://app.example.com/silent")),
		AccessTokenValidity: new(client.Duration(90 * time.Minute)),
	}
	fmt.Println(*request.RedirectUris)
	fmt.Println(*request.AccessTokenValidity)
	// Output:
	// https://app.example.com/callback
	// https://app.example.com/silent
	// hours=1;minutes=30
}

func ExampleSecret() {
	request := client.OAuth2ProviderRequest{ClientSecret: new(client.NewSecret("an example"))}
	fmt.Println(request.ClientSecret, request.ClientSecret.Reveal())
	// Output: ******** an example
}
