// Package client is the Go SDK of providerd. New returns Providers, whose methods create a provider and return the
// stored record:
//
//	providers, err := client.New("http://127.0.0.1:8080", token)
//	…
//	record, err := providers.CreateOAuth2(ctx, client.OAuth2ProviderRequest{
//		Name:              "Wiki",
//		AuthorizationFlow: uuid.MustParse("3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"),
//		SubMode:           new(client.SubModeEnumUserEmail),
//	}, client.WithIdempotencyKey("wiki"))
//
// Optional fields are pointers. Lost requests are retried, and still create only one record: see Providers.
//
// A refusal is an *Error, and errors.Is finds its type, such as ErrClientIDTaken. A newer server may return other
// types, codes and enum values, which are passed on unchanged. If there was no complete response, the error is that of
// net/http; IsTemporary reports whether the same request may succeed later.
//
// Client secrets and credentials are of the types Secret and SecretJSON, which print and log as ********.
package client
