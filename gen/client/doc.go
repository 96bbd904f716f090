// Package client is the Go SDK of providerd. New returns Providers, whose methods create a provider and return the
// stored record, or validate one without storing it:
//
//	providers, err := client.New("http://127.0.0.1:8080", token)
//	…
//	record, err := providers.CreateOAuth2(ctx, client.OAuth2ProviderRequest{
//		Name:              "Wiki",
//		AuthorizationFlow: uuid.MustParse("3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"),
//		SubMode:           new(client.SubModeEnumUserEmail),
//	}, client.WithIdempotencyKey("wiki"))
//
// Optional fields are pointers; new returns one for a value. Lost requests are retried, and still create only one
// record: see Providers.
//
// A refusal is an *Error, and errors.Is finds the common ones, such as ErrClientIDTaken. Its Type is one of the
// constants TypeMalformedJSON and so on, and the Code of each Violation one of ViolationCodeRequired and so on. A newer
// server may return other types, codes and enum values, which are passed on unchanged. If there was no usable response,
// the error is a *ConnectionError, which says what was found and what to do.
//
// Client secrets and credentials are of the types Secret and SecretJSON, which print and log as ********.
//
// The rest, around ClientWithResponses, is generated from the contract. It sends each request once, as it is.
package client
