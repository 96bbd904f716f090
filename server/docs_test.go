package server_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

func TestReferencePageIsServedFromTheProgram(t *testing.T) {
	t.Parallel()
	h := start(t)
	page := h.send(t, http.MethodGet, "/docs/", nil, set("Authorization"))
	if page.status != http.StatusOK || !strings.Contains(string(page.body), "/openapi.json") {
		t.Errorf("%d: %s", page.status, page.body)
	}
	for _, part := range []string{"default-src 'none'", "script-src 'self' 'sha256-", "connect-src 'self'"} {
		if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, part) {
			t.Errorf("%q is not in %q", part, policy)
		}
	}
	if strings.Contains(page.header.Get("Content-Security-Policy"), "script-src 'self' 'unsafe") {
		t.Error("any script may run")
	}
	for path, want := range map[string]string{
		"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "javascript", "swagger-ui-standalone-preset.js": "javascript",
		"favicon-32x32.png": "image/png",
	} {
		got := h.send(t, http.MethodGet, "/docs/"+path, nil)
		if got.status != http.StatusOK || !strings.Contains(got.header.Get("Content-Type"), want) || len(got.body) == 0 {
			t.Errorf("%s: %d, %s, %d bytes", path, got.status, got.header.Get("Content-Type"), len(got.body))
		}
	}
	// The client of the harness asks for gzip, and unpacks it, unless it is told otherwise.
	plain := h.send(t, http.MethodGet, "/docs/swagger-ui.css", nil, set("Accept-Encoding", "identity"))
	if packed := h.send(t, http.MethodGet, "/docs/swagger-ui.css", nil); !bytes.Equal(plain.body, packed.body) {
		t.Errorf("%d bytes are served plain, %d packed", len(plain.body), len(packed.body))
	}
	h.send(t, http.MethodGet, "/docs/oauth2-redirect.html", nil).problem(t, http.StatusNotFound, "not-found")
	h.send(t, http.MethodGet, "/docs/../keyset.json", nil).problem(t, http.StatusNotFound, "not-found")
	h.send(t, http.MethodPost, "/docs/", nil).problem(t, http.StatusMethodNotAllowed, "method-not-allowed")
}
