package client_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/gen/client"
	"example.com/providerd/server"
	"example.com/providerd/server/contract"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
	"example.com/providerd/store/token"
)

// startServer starts a server over a new database, and creates a token that allows everything.
func startServer(t *testing.T) (baseURL, text string) {
	t.Helper()
	opened, err := storetest.CreateSQLite(t.Context(), filepath.Join(t.TempDir(), "providerd.db"), "")
	database := processtest.Closing(t, opened, err)
	contract, err := contract.Load(t.Context())
	processtest.Must(t, err)
	handler, err := server.New(server.Config{
		Contract: contract, Store: database, Logger: slog.New(slog.DiscardHandler), FailedAttempts: 1,
	})
	processtest.Must(t, err)
	text, _, err = database.Tokens.Create(t.Context(), token.Grant{
		Name: "sdk", Operations: contract.OperationIDs(), ExpiresIn: time.Hour,
	})
	processtest.Must(t, err)
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	return listener.URL, text
}

// rig has Providers of a real server. Its keys are those of the requests. Each response is checked against the contract,
// and the first ones can be replaced by others.
type rig struct {
	*client.Providers
	keys    []string
	instead []doerFunc
}

func newRig(t *testing.T) *rig {
	t.Helper()
	baseURL, token := startServer(t)
	transport, r := contracttest.Client(t).Transport, &rig{}
	doer := &http.Client{Transport: doerFunc(func(request *http.Request) (*http.Response, error) {
		r.keys = append(r.keys, request.Header.Get("Idempotency-Key"))
		response, err := transport.RoundTrip(request)
		if err != nil || len(r.instead) == 0 {
			return response, err
		}
		_ = response.Body.Close()
		instead := r.instead[0]
		r.instead = r.instead[1:]
		return instead(request)
	})}
	var err error
	r.Providers, err = client.New(baseURL, token, client.WithDoer(doer))
	processtest.Must(t, err)
	return r
}

func oauth2Request() client.OAuth2ProviderRequest {
	return client.OAuth2ProviderRequest{Name: "x", AuthorizationFlow: uuid.New()}
}

func directoryRequest() client.WorkspaceDirectoryProviderRequest {
	return client.WorkspaceDirectoryProviderRequest{
		Name: "Staff", DelegatedSubject: "admin@example.com", DefaultGroupEmailDomain: "example.com",
		Credentials: client.NewSecretJSON(`{"a":1}`),
	}
}

func TestRefusalHasAllDetails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	request := oauth2Request()
	request.Name, request.RedirectUris = " ", new("s")
	_, err := r.CreateOAuth2(t.Context(), request)
	refused, ok := errors.AsType[*client.Error](err)
	processtest.Require(t, ok, "error is %v", err)
	if refused.Status != 400 || refused.Type != "/problems/validation-failed" || refused.RequestID == "" ||
		len(refused.Violations()) != 2 || refused.Violations()[1].Code != "invalid_uri" {
		t.Errorf("error is %+v", refused)
	}
	for _, part := range []string{"400 Validation failed", "`name` must", "`redirect_uris` line 1 must", refused.RequestID} {
		processtest.Expect(t, strings.Contains(err.Error(), part), "%q is not in %q", part, err)
	}
	processtest.Expect(t, len(r.keys) == 1, "a permanent refusal was tried %d times", len(r.keys))
}

func TestNewRefusesInvalidArguments(t *testing.T) {
	t.Parallel()
	const url = "http://example.com"
	expectRefusal := func(baseURL, token, want string) {
		_, err := client.New(baseURL, token)
		processtest.Expect(t, err != nil && strings.HasPrefix(err.Error(), want) && !strings.Contains(err.Error(), "hunter2"),
			"New with %q and %q: error is %v, want %q", baseURL, token, err, want)
	}
	for _, baseURL := range []string{
		"", "localhost:8080", "ftp://example.com", "http://", "://", url + "?hunter2", url + "/api/v3/#hunter2",
		url + "/api/v3/providers/oauth2/",
	} {
		expectRefusal(baseURL, "t", "the base URL")
	}
	for want, tokens := range map[string][]string{
		"contains":                {"hunter2\n", "hunter2\r\nX-Other: 1", "hunter2 ", "hunter2\x00", "hunter2é"},
		"is empty, a placeholder": {"", "undefined", "$(cat hunter2)", "${hunter2}", "{{hunter2}}", "<hunter2>", "%hunter2%"},
		"is the path of a file":   {"../hunter2", "/hunter2", "~hunter2", `C:\hunter2`, "hunter2.txt", "a/initial-token", "a/token"},
		"begins with Bearer":      {"Bearer hunter2", "bearer hunter2\n", "Bearer "},
	} {
		for _, token := range tokens {
			expectRefusal(url, token, "the access token "+want)
		}
	}
	for want, option := range map[string]client.Option{
		"the timeout of an attempt is not positive": client.WithTryTimeout(0),
		"the number of retries is negative":         client.WithRetries(-1),
	} {
		if _, err := client.New(url, "t", option); err == nil || err.Error() != want {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}

func TestBaseURLWithAndWithoutAPIPath(t *testing.T) {
	t.Parallel()
	for baseURL, want := range map[string]string{
		"http://example.com":           "http://example.com/api/v3/providers/oauth2/",
		"http://example.com//":         "http://example.com/api/v3/providers/oauth2/",
		"http://example.com/api/v3":    "http://example.com/api/v3/providers/oauth2/",
		"http://example.com/api/v3//":  "http://example.com/api/v3/providers/oauth2/",
		"https://example.com:8443/a/b": "https://example.com:8443/a/b/api/v3/providers/oauth2/",
		"http://example.com/a/api/v3/": "http://example.com/a/api/v3/providers/oauth2/",
		"http://example.com/rapi/v3":   "http://example.com/rapi/v3/api/v3/providers/oauth2/",
	} {
		var sent string
		providers, err := client.New(baseURL, "B/a+s=", client.WithRetries(0), client.WithDoer(doerFunc(
			func(request *http.Request) (*http.Response, error) {
				sent = request.URL.String()
				return nil, io.EOF
			})))
		processtest.Must(t, err)
		if _, err := providers.CreateOAuth2(t.Context(), oauth2Request()); !errors.Is(err, io.EOF) || sent != want {
			t.Errorf("%s: the request is sent to %s, want %s: %v", baseURL, sent, want, err)
		}
	}
}

// An invalid key or body, or a probable mistake such as a flow that is not set, is refused before anything is sent, and
// not quoted. WithUnchecked sends mistakes.
func TestInvalidRequestIsNotSent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, key := range []string{"", "hunter2 ", "hunter2\n", "hunter2é", strings.Repeat("k", 256)} {
		_, err := r.CreateOAuth2(t.Context(), oauth2Request(), client.WithIdempotencyKey(key))
		if err == nil || !strings.HasSuffix(err.Error(), "; write one without spaces, such as import-wiki") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("key %q: error is %v", key, err)
		}
	}
	const want = "create provider: Credentials is not a JSON object; pass the contents of a file, not its path"
	for _, credentials := range []string{"", "hunter2.json", ` "hunter2"`, "{", `{"a":1}hunter2`, "\xff"} {
		_, err := r.CreateWorkspaceDirectory(t.Context(), client.WorkspaceDirectoryProviderRequest{
			Name: "x", Credentials: client.NewSecretJSON(credentials),
		})
		if err == nil || err.Error() != want {
			t.Errorf("credentials %q: error is %v", credentials, err)
		}
	}
	for want, changed := range map[string]client.OAuth2ProviderRequest{
		"ClientSecret is empty; set the variable or file that it comes from, or omit ClientSecret": {
			ClientSecret: new(client.NewSecret("")),
		},
		"ClientSecret is the mask of a printed secret; pass the secret itself": {
			ClientSecret: new(client.NewSecret(fmt.Sprint(client.NewSecret("x")))),
		},
		"Name or ClientSecret is not UTF-8, so JSON would change it; encode it, for example as Base64": {
			ClientSecret: new(client.NewSecret("\xff")),
		},
		"RedirectUris has two URIs on a line; pass each as an argument of RedirectURIs": {
			RedirectUris: new(client.RedirectURIs("a:b", "https://a.example/, https://b.example/")),
		},
		"RedirectUris has an empty URI; set the variable or file that it comes from, or omit the URI": {
			RedirectUris: new(client.RedirectURIs("")),
		},
		"a validity is shorter than a second; pass Duration a number with its unit, such as 3600*time.Second": {
			RefreshTokenValidity: new(client.Duration(3600)),
		},
	} {
		changed.Name, changed.AuthorizationFlow = "x", uuid.New()
		if _, err := r.CreateOAuth2(t.Context(), changed); err == nil || err.Error() != "create provider: "+want {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
	request := client.OAuth2ProviderRequest{Name: "x"}
	for _, options := range [][]client.CreateOption{nil, {client.WithValidateOnly()}} {
		const want = "create provider: AuthorizationFlow is not set; set it to the flow that authorizes this provider"
		if _, err := r.CreateOAuth2(t.Context(), request, options...); err == nil || err.Error() != want {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
	if _, err := new(client.Providers).CreateOAuth2(t.Context(), oauth2Request()); err == nil {
		t.Error("the zero value of Providers is used")
	}
	if _, err := r.CreateOAuth2(nil, oauth2Request()); err == nil { //nolint:staticcheck // A mistake of callers.
		t.Error("a nil context is used")
	}
	processtest.Expect(t, len(r.keys) == 0, "%d requests were sent", len(r.keys))
	_, err := r.CreateOAuth2(t.Context(), request, client.WithUnchecked(), client.WithValidateOnly())
	processtest.Must(t, err)
	request.ClientSecret, request.RedirectUris = new(client.NewSecret("")), new("https://a.example/,https://b.example/")
	record, err := r.CreateOAuth2(t.Context(), request, client.WithUnchecked())
	if err != nil || record.AuthorizationFlow != uuid.Nil || record.ClientSecret.Reveal() != "" || record.RedirectUris != *request.RedirectUris {
		t.Errorf("record is %v, %v", record, err)
	}
}

// blockFrame makes a program of a block of the README.
const blockFrame = `package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/gen/client"
)

var _, _, _, _, _ = context.Background, errors.Is, log.Fatal, os.Exit, time.Hour
var _, err = uuid.Nil, error(nil)

func main() {
	%s
}
`

// The first block of the README is a program that prints what follows it; the other ones compile and run.
func TestBlocksOfTheREADMEAreRun(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	processtest.Must(t, err)
	baseURL, token := startServer(t)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```\n").FindAllStringSubmatch(string(readme), -1)
	for i, block := range blocks {
		program := filepath.Join(t.TempDir(), "main.go")
		source := strings.ReplaceAll(block[1], "http://127.0.0.1:8080", baseURL)
		if i > 0 {
			source = fmt.Sprintf(blockFrame, source)
		}
		processtest.Must(t, os.WriteFile(program, []byte(source), 0o600))
		command := exec.CommandContext(t.Context(), "go", "run", program)
		command.Env = append(os.Environ(), "PROVIDERD_TOKEN="+token)
		output, err := command.CombinedOutput()
		if err != nil || i == 0 && !regexp.MustCompile(`^1 \w{40} \*{8}\n$`).Match(output) {
			t.Errorf("%s%v: %s", block[1], err, output)
		}
	}
	processtest.Expect(t, regexp.MustCompile("```text\n1 \\w{40} \\*{8}\n```").Match(readme) && len(blocks) >= 3,
		"the README lacks the output of its first block, or the other blocks")
}
