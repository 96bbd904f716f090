package server_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/providerd/gen/api"
	"example.com/providerd/server"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store"
)

// limitRate lets the server of a harness take so many requests an hour of each name of a token.
func (h *harness) limitRate(t *testing.T, requests int) {
	t.Helper()
	contract, err := server.ParseContract(t.Context(), api.Contract())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := server.New(server.Config{
		Contract: contract, Store: h.database, Logger: slog.New(slog.DiscardHandler), FailedAttempts: 1_000_000,
		RateLimit: server.RateLimit{Requests: requests, Window: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	h.url = listener.URL
}

// What the tokens of one name send counts together, whatever becomes of it. Others are not touched.
func TestRateLimitIsForTheNameOfTheToken(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.limitRate(t, 3)
	body := encode(t, minimal(oauth2Path))
	narrow := h.newToken(t, store.TokenGrant{Name: "test", Operations: []string{oauth2Operation}, ExpiresIn: time.Hour})
	other := h.newToken(t, store.TokenGrant{Name: "other", Operations: []string{oauth2Operation}, ExpiresIn: time.Hour})
	h.post(t, oauth2Path, body).record(t)
	h.post(t, oauth2Path, "{}").problem(t, http.StatusBadRequest, "validation-failed")
	h.post(t, workspaceDirectoryPath, "{}", set("Authorization", "Bearer "+narrow)).
		problem(t, http.StatusForbidden, "forbidden")
	for _, path := range []string{oauth2Path, workspaceDirectoryPath, oauth2Path + "?validate_only=true"} {
		for _, token := range []string{h.token, narrow} {
			limited := h.post(t, path, body, set("Authorization", "Bearer "+token))
			problem := limited.problem(t, http.StatusTooManyRequests, "too-many-requests")
			if !strings.Contains(problem.Detail, "3 requests per 3600 s") {
				t.Errorf("detail is %s", problem.Detail)
			}
			seconds, err := strconv.Atoi(limited.header.Get("Retry-After"))
			if err != nil || seconds < 1 || seconds > 1200 {
				t.Errorf("Retry-After is %q, want 1 to 1200", limited.header.Get("Retry-After"))
			}
			if got, want := limited.header.Get("RateLimit"), `"caller";r=0;t=`+strconv.Itoa(seconds); got != want {
				t.Errorf("RateLimit is %q, want %q", got, want)
			}
			if got := limited.header.Get("RateLimit-Policy"); got != `"caller";q=3;w=3600` {
				t.Errorf("RateLimit-Policy is %q", got)
			}
		}
	}
	h.post(t, oauth2Path, body, set("Authorization", "Bearer "+other)).record(t)
	unknown := h.post(t, oauth2Path, body, set("Authorization", wrongToken))
	unknown.problem(t, http.StatusUnauthorized, "unauthorized")
	if h.send(t, http.MethodGet, "/healthz", nil).status != http.StatusOK {
		t.Error("what needs no token is limited")
	}
}

// Who is told to wait is not read from.
func TestRateLimitComesBeforeTheBody(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.limitRate(t, 1)
	h.post(t, oauth2Path, encode(t, minimal(oauth2Path))).record(t)
	expect := func(request *http.Request) {
		request.ContentLength = 10
		request.Header.Set("Expect", "100-continue")
	}
	h.client = contracttest.ClientOver(t, &http.Transport{ExpectContinueTimeout: time.Minute})
	h.send(t, http.MethodPost, oauth2Path, unread{t}, expect, set("Authorization", "Bearer "+h.token)).
		problem(t, http.StatusTooManyRequests, "too-many-requests")
}
