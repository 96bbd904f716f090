// Package client is the Go SDK of providerd. New makes Providers, whose methods create a provider and return the stored
// record, or validate one and store nothing:
//
//	providers, err := client.New("http://127.0.0.1:8080", token)
//	…
//	record, err := providers.CreateOAuth2(ctx, client.OAuth2ProviderRequest{
//		Name:              "Wiki",
//		AuthorizationFlow: uuid.MustParse("3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"),
//		SubMode:           new(client.SubModeEnumUserEmail),
//	}, client.WithIdempotencyKey("wiki"))
//
// Optional fields are pointers, which Ptr makes of values. What is lost on the way is sent again, and makes one record
// however often it is sent: see Providers.
//
// A refusal is an *Error, and errors.Is finds the common ones, such as ErrClientIDTaken. Its Type is one of the
// constants TypeMalformedJSON and so on, and the Code of each of its Violations one of ViolationCodeRequired and so on.
// A server that is newer than this package may answer others, and other members of enums; they are returned as is.
// If there was no usable response, the error is a *ConnectionError, which says what was found and what to do.
//
// Client secrets and credentials are of the types Secret and SecretJSON, which print and log as ********.
//
// The rest, around ClientWithResponses, is generated from the contract: it sends what it is given, once.
package client
