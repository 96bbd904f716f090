// Package steps is what every generated Go client is made to do.
package steps

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/google/uuid"
)

// Values of the smallest requests.
const (
	Name      = "Intranet"
	Directory = `{"name": "Staff", "delegated_subject": "admin@example.com", "credentials": {"key": "example"},
		"default_group_email_domain": "example.com"}`
)

// Flow is the authorization flow of the smallest request.
var Flow = uuid.MustParse("3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01")

// BaseURL is the URL that the paths of the contract are relative to.
func BaseURL() string { return os.Getenv("PROVIDERD_SERVER") + "/api/v3" }

// Authorize adds the access token to a request.
func Authorize(_ context.Context, request *http.Request) error {
	request.Header.Set("Authorization", "Bearer "+Token())
	return nil
}

// Token returns the access token.
func Token() string { return os.Getenv("PROVIDERD_TOKEN") }

// Run prints what a client returns for each step: a record or a problem as it was decoded, or an error.
func Run(oauth2 func(redirectURIs, key string, validateOnly bool) (any, error), workspace func() (any, error)) {
	const uris = "https://intranet.example.com/callback"
	key := uuid.NewString()
	results := make(map[string]any)
	step := func(name string, call func() (any, error)) {
		result, err := call()
		if err != nil {
			result = map[string]string{"failed": err.Error()}
		}
		results[name] = result
	}
	step("oauth2", func() (any, error) { return oauth2(uris, "", false) })
	step("workspace", workspace)
	step("refused", func() (any, error) { return oauth2("javascript:alert(1)", "", false) })
	step("first", func() (any, error) { return oauth2(uris, key, false) })
	step("again", func() (any, error) { return oauth2(uris, key, false) })
	step("validated", func() (any, error) { return oauth2(uris, "", true) })
	text, err := json.Marshal(results)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}
