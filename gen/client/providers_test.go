package client_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/gen/client"
	"example.com/providerd/server"
	"example.com/providerd/server/contract"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// startServer starts a server over a new database, and creates a token that allows everything.
func startServer(t *testing.T) (baseURL, token string) {
	t.Helper()
	opened, err := storetest.CreateSQLite(t.Context(), filepath.Join(t.TempDir(), "providerd.db"), "")
	database := processtest.Closing(t, opened, err)
	contract, err := contract.Load(t.Context())
	processtest.Must(t, err)
	handler, err := server.New(server.Config{
		Contract: contract, Store: database, Logger: slog.New(slog.DiscardHandler), FailedAttempts: 1,
	})
	processtest.Must(t, err)
	token, _, err = database.CreateToken(t.Context(), store.TokenGrant{
		Name: "sdk", Operations: contract.OperationIDs(), ExpiresIn: time.Hour,
	})
	processtest.Must(t, err)
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	return listener.URL, token
}

// wire forwards requests and checks each response against the contract. It can lose or replace responses.
type wire struct {
	http.RoundTripper
	mutex sync.Mutex
	// instead has, for each try in turn, a function that replaces the response; nil to keep it.
	instead []func(*http.Request, *http.Response) (*http.Response, error)
	keys    []string
}

func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.keys = append(w.keys, request.Header.Get("Idempotency-Key"))
	if len(w.instead) == 0 {
		return response, nil
	}
	instead := w.instead[0]
	w.instead = w.instead[1:]
	if instead == nil {
		return response, nil
	}
	return instead(request, response)
}

// lost replaces a response that does not arrive, although the server has handled the request.
func lost(*http.Request, *http.Response) (*http.Response, error) {
	return nil, &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// unavailable replaces the response with a refusal.
func unavailable(status int, retryAfter string) func(*http.Request, *http.Response) (*http.Response, error) {
	return func(request *http.Request, response *http.Response) (*http.Response, error) {
		_ = response.Body.Close()
		return answers(status, retryAfter)(request)
	}
}

// rig has Providers of a real server behind a wire.
type rig struct {
	wire      *wire
	providers *client.Providers
}

func newRig(t *testing.T) *rig {
	t.Helper()
	baseURL, token := startServer(t)
	wire := &wire{RoundTripper: contracttest.Client(t).Transport}
	providers, err := client.New(baseURL, token, client.WithDoer(&http.Client{Transport: wire}))
	processtest.Must(t, err)
	return &rig{wire, providers}
}

func oauth2Request() client.OAuth2ProviderRequest {
	return client.OAuth2ProviderRequest{Name: "x", AuthorizationFlow: uuid.New()}
}

func TestRefusalHasAllDetails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	request := oauth2Request()
	request.Name, request.RedirectUris = " ", new("s")
	_, err := r.providers.CreateOAuth2(t.Context(), request)
	var refused *client.Error
	if !errors.As(err, &refused) {
		t.Fatalf("error is %v", err)
	}
	if refused.Status != 400 || refused.Type != "/problems/validation-failed" || refused.RequestID == "" ||
		len(refused.Violations()) != 2 || refused.Violations()[1].Code != "invalid_uri" {
		t.Errorf("error is %+v", refused)
	}
	for _, part := range []string{"400 Validation failed", "`name` must", "`redirect_uris` line 1 must", refused.RequestID} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
	if len(r.wire.keys) != 1 {
		t.Errorf("a permanent refusal was tried %d times", len(r.wire.keys))
	}
}

// expectViolation checks the violation of a value.
func expectViolation(t *testing.T, err error, pointer string, code client.ViolationCode) {
	t.Helper()
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || !errors.Is(err, client.ErrValidationFailed) || errors.Is(err, client.ErrClientIDTaken) {
		t.Fatalf("error is %v", err)
	}
	if violation, ok := refused.Violation(pointer); !ok || violation.Code != code {
		t.Errorf("the violation at %s is %v, want %s", pointer, violation, code)
	}
	if violation, ok := refused.Violation("/elsewhere"); ok {
		t.Errorf("unexpected violation: %v", violation)
	}
}

func TestKeyFindsEarlierRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	request := directoryRequest()
	for _, again := range []bool{false, true} {
		replayed := !again
		record, err := r.providers.CreateWorkspaceDirectory(t.Context(), request,
			client.WithIdempotencyKey("k"), client.WithLenientHandling(), client.WithReplayed(&replayed))
		if err != nil || record.PK != 1 || replayed != again {
			t.Errorf("record is %v, %v; replayed is %t", record, err, replayed)
		}
	}
	request.Name = "Others"
	_, err := r.providers.CreateWorkspaceDirectory(t.Context(), request, client.WithIdempotencyKey("k"))
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != 422 || len(refused.Violations()) != 1 {
		t.Errorf("error is %v", err)
	}
}

func TestNewRefusesInvalidArguments(t *testing.T) {
	t.Parallel()
	const url = "http://example.com"
	for _, arguments := range [][2]string{
		{"", "t"},
		{"localhost:8080", "t"},
		{"ftp://example.com", "t"},
		{"http://", "t"},
		{"://", "t"},
		{url + "?hunter2", "t"},
		{url + "/api/v3/#hunter2", "t"},
		{url, ""},
		{url, "hunter2\n"},
		{url, "hunter2\r\nX-Other: 1"},
		{url, "hunter2 "},
		{url, "hunter2\x00"},
		{url, "hunter2é"},
	} {
		if _, err := client.New(arguments[0], arguments[1]); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("New with %q: error is %v", arguments, err)
		}
	}
	if _, err := client.New(url, "t", client.WithTryTimeout(0)); err == nil {
		t.Error("New accepts a try timeout of zero")
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
		providers, err := client.New(baseURL, "t", client.WithRetries(0), client.WithDoer(doerFunc(
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

// A flow that is not set is not sent, but the nil UUID can be.
func TestUnsetFlowIsNotSent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	request := client.OAuth2ProviderRequest{Name: "x"}
	_, created := r.providers.CreateOAuth2(t.Context(), request)
	_, validated := r.providers.CreateOAuth2(t.Context(), request, client.WithValidateOnly())
	for _, err := range []error{created, validated} {
		const want = "create provider: AuthorizationFlow is not set; set it to the flow that authorizes this provider"
		if err == nil || err.Error() != want {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
	if len(r.wire.keys) != 0 {
		t.Errorf("%d requests were sent", len(r.wire.keys))
	}
	_, err := r.providers.CreateOAuth2(t.Context(), request, client.WithNilAuthorizationFlow(), client.WithValidateOnly())
	processtest.Must(t, err)
	record, err := r.providers.CreateOAuth2(t.Context(), request, client.WithNilAuthorizationFlow())
	if err != nil || record.AuthorizationFlow != uuid.Nil {
		t.Errorf("record is %v, %v", record, err)
	}
}

// An invalid key or body is refused before anything is sent, and not quoted.
func TestInvalidRequestIsNotSent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, key := range []string{"", "hunter2 ", "hunter2\n", "hunter2é", strings.Repeat("k", 256)} {
		_, err := r.providers.CreateOAuth2(t.Context(), oauth2Request(), client.WithIdempotencyKey(key))
		if err == nil || !strings.Contains(err.Error(), "idempotency key") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("key %q: error is %v", key, err)
		}
	}
	for _, credentials := range []string{"{", "hunter2", `{"a":1}hunter2`, "\xff"} {
		_, err := r.providers.CreateWorkspaceDirectory(t.Context(), client.WorkspaceDirectoryProviderRequest{
			Name: "x", Credentials: client.NewSecretJSON(credentials),
		})
		if err == nil || !strings.HasSuffix(err.Error(), "cannot encode the request as JSON; the credentials must be one JSON object") {
			t.Errorf("credentials %q: error is %v", credentials, err)
		}
	}
	if len(r.wire.keys) != 0 {
		t.Errorf("%d requests were sent", len(r.wire.keys))
	}
}
