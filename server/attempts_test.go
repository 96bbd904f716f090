package server_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"example.com/providerd/server"
)

const wrongToken = "Bearer pvd_0000000000000000000000000000000000000000"

// After 20 invalid tokens, an address must wait. Valid tokens from it are still accepted, and other addresses are not
// affected.
func TestWrongTokensAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	h := start(t)
	const limit = 20
	handler := h.serve(t, func(config *server.Config) { config.FailedAttempts = limit })
	body := encode(t, minimal(oauth2Path))
	for range limit {
		h.post(t, oauth2Path, body, set("Authorization", wrongToken)).problem(t, http.StatusUnauthorized, "unauthorized")
	}
	limited := h.post(t, oauth2Path, body, set("Authorization", wrongToken))
	limited.problem(t, http.StatusTooManyRequests, "too-many-requests")
	if wait, err := strconv.Atoi(limited.header.Get("Retry-After")); err != nil || wait < 1 || wait > 3 {
		t.Errorf("Retry-After is %q, want 1 to 3", limited.header.Get("Retry-After"))
	}
	h.post(t, oauth2Path, body).record(t)
	h.post(t, oauth2Path, body, set("Authorization")).problem(t, http.StatusUnauthorized, "unauthorized")

	for address, want := range map[string]int{
		"127.0.0.1:1":         http.StatusTooManyRequests,
		"192.0.2.1:1":         http.StatusUnauthorized,
		"[2001:db8::1]:1":     http.StatusUnauthorized,
		"[2001:db8:0:1::1]:1": http.StatusUnauthorized,
	} {
		if status := postFrom(handler, address); status != want {
			t.Errorf("from %s: status is %d, want %d", address, status, want)
		}
	}
	// All addresses of a /64 network count as one.
	for i := range limit {
		postFrom(handler, "[2001:db8::"+strconv.Itoa(i+1)+"]:1")
	}
	if status := postFrom(handler, "[2001:db8::ffff]:1"); status != http.StatusTooManyRequests {
		t.Errorf("status is %d, want 429", status)
	}
}

// postFrom sends an invalid token as if from an address.
func postFrom(handler http.Handler, address string) int {
	request := httptest.NewRequest(http.MethodPost, oauth2Path, strings.NewReader("{}"))
	request.RemoteAddr = address
	request.Header.Set("Authorization", wrongToken)
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder.Code
}

// Only the log says why a token was refused.
func TestMistypedTokenIsToldApartInTheLog(t *testing.T) {
	t.Parallel()
	h := start(t)
	body := encode(t, minimal(oauth2Path))
	first := h.post(t, oauth2Path, body, set("Authorization", "Bearer "+start(t).token), set("X-Request-Id", "same"))
	second := h.post(t, oauth2Path, body, set("Authorization", wrongToken), set("X-Request-Id", "same"))
	if string(first.body) != string(second.body) ||
		first.header.Get("WWW-Authenticate") != second.header.Get("WWW-Authenticate") {
		t.Errorf("answers differ: %s and %s", first.body, second.body)
	}
	lines := h.log.String()
	if count := strings.Count(lines, "not a token, or mistyped"); count != 1 {
		t.Errorf("%d lines of the log report a mistyped token, want 1: %s", count, lines)
	}
}
