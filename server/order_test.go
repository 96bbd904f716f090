package server_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// TestOneRequestHasOneAnswer sends requests with fewer and fewer mistakes: the first check that fails decides the
// response.
func TestOneRequestHasOneAnswer(t *testing.T) {
	t.Parallel()
	h := start(t)
	other := h.newToken(t, "x", time.Hour, workspaceDirectoryOperation)
	large := `{"name":"` + strings.Repeat("x", 1<<20) + `"`
	taken := minimal(oauth2Path)
	taken["client_id"] = "taken-value"
	used := set(keyHeader, "used")
	h.post(t, oauth2Path, encode(t, taken), used).record(t)

	wrongType, html := set("Content-Type", "text/plain"), set("Accept", "text/html")
	none, forbidden := set("Authorization"), set("Authorization", "Bearer "+other)
	for _, test := range []struct {
		method, path, body string
		changes            []func(*http.Request)
		status             int
		slug               string
	}{
		{http.MethodPut, "/nowhere", large, []func(*http.Request){none, html, wrongType}, 404, "not-found"},
		{http.MethodPut, oauth2Path, large, []func(*http.Request){none, html, wrongType}, 405, "method-not-allowed"},
		{http.MethodPost, oauth2Path, large, []func(*http.Request){none, html, wrongType}, 401, "unauthorized"},
		{http.MethodPost, oauth2Path, large, []func(*http.Request){forbidden, html, wrongType}, 403, "forbidden"},
		{http.MethodPost, oauth2Path, large, []func(*http.Request){html, wrongType}, 406, "not-acceptable"},
		{http.MethodPost, oauth2Path, large, []func(*http.Request){wrongType}, 415, "unsupported-media-type"},
		{http.MethodPost, oauth2Path, large, nil, 413, "too-large"},
		{http.MethodPost, oauth2Path, `{"client_id":"taken-value"`, nil, 400, "malformed-json"},
		{http.MethodPost, oauth2Path, `{"client_id":"taken-value"}`, nil, 400, "validation-failed"},
		{http.MethodPost, oauth2Path, `{"client_id":"taken-value"}`, []func(*http.Request){used}, 400, "validation-failed"},
		{http.MethodPost, oauth2Path, encode(t, with(taken, "name", "other")), []func(*http.Request){used}, 422, "idempotency-key-reused"},
		{http.MethodPost, oauth2Path, encode(t, taken), nil, 409, "client-id-taken"},
	} {
		changes := append([]func(*http.Request){
			set("Authorization", "Bearer "+h.token), set("Content-Type", "application/json"),
		}, test.changes...)
		got := h.send(t, test.method, test.path, strings.NewReader(test.body), changes...)
		problem := got.problem(t, test.status, test.slug)
		if test.status == http.StatusConflict &&
			(!slices.Equal(violations(problem), []string{"/client_id taken"}) || strings.Contains(string(got.body), "taken-value")) {
			t.Errorf("the conflict is %s", got.body)
		}
	}
	// Case matters, and names may be the same.
	taken["client_id"] = "Taken-Value"
	h.post(t, oauth2Path, encode(t, taken)).record(t)
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	h := start(t)
	const limit = 1 << 20
	start, end := `{"authorization_flow":"`+flow+`","name":"`, `"}`
	exact := start + strings.Repeat("x", limit-len(start)-len(end)) + end
	chunked := func(request *http.Request) { request.ContentLength = -1 }
	h.post(t, oauth2Path, exact).record(t)
	h.post(t, oauth2Path, exact, chunked).record(t)
	h.post(t, oauth2Path, exact+" ").problem(t, http.StatusRequestEntityTooLarge, "too-large")
	h.post(t, oauth2Path, exact+" ", chunked).problem(t, http.StatusRequestEntityTooLarge, "too-large")
}

func TestStorageUnavailable(t *testing.T) {
	t.Parallel()
	h := start(t)
	processtest.Must(t, os.Rename(h.path, h.path+".away"))
	h.post(t, oauth2Path, "{}").problem(t, http.StatusBadRequest, "validation-failed")
	// Right after the check that follows a commit, a create could still rely on that check.
	h.send(t, http.MethodGet, "/readyz", nil).problem(t, http.StatusServiceUnavailable, "storage-unavailable")
	got := h.post(t, oauth2Path, encode(t, minimal(oauth2Path)))
	got.problem(t, http.StatusServiceUnavailable, "storage-unavailable")
	if got.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
	}
	if got := h.send(t, http.MethodGet, "/healthz", nil); got.status != http.StatusOK {
		t.Errorf("/healthz answers %d", got.status)
	}
}

// A statement that SQLite cannot parse is an internal error: a retry does not help.
func TestFaultOfTheServer(t *testing.T) {
	t.Parallel()
	h := start(t)
	storetest.Execute(t, h.path, "DROP TABLE providers")
	h.post(t, oauth2Path, encode(t, minimal(oauth2Path))).problem(t, http.StatusInternalServerError, "internal")
}
