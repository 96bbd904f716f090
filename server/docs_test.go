package server_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"example.com/providerd/gen/contract"
)

func TestReferencePageIsServedFromTheProgram(t *testing.T) {
	t.Parallel()
	h := start(t)
	page := h.send(t, http.MethodGet, "/docs/", nil, set("Authorization"))
	if page.status != http.StatusOK || !strings.Contains(string(page.body), `<script src="scalar.js">`) {
		t.Errorf("%d: %s", page.status, page.body)
	}
	policy := page.header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'; ", "; script-src 'self'; ", "; connect-src 'self'; "} {
		if !strings.Contains(policy, part) {
			t.Errorf("%q is not in %q", part, policy)
		}
	}
	for path, want := range map[string]string{
		"reference.css": "text/css", "reference.js": "text/javascript", "scalar.js": "text/javascript",
	} {
		got := h.send(t, http.MethodGet, "/docs/"+path, nil)
		if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), want) || len(got.body) == 0 {
			t.Errorf("%s: %d, %s, %d bytes", path, got.status, got.header.Get("Content-Type"), len(got.body))
		}
	}
	h.send(t, http.MethodGet, "/docs/scalar.js.gz", nil).problem(t, http.StatusNotFound, "not-found")
	h.send(t, http.MethodGet, "/docs/../keyset.json", nil).problem(t, http.StatusNotFound, "not-found")
	h.send(t, http.MethodPost, "/docs/", nil).problem(t, http.StatusMethodNotAllowed, "method-not-allowed")
}

func TestReferencePageIsSentOnceAndPacked(t *testing.T) {
	t.Parallel()
	h := start(t)
	const script = "/docs/scalar.js"
	plain := h.send(t, http.MethodGet, script, nil, set("Accept-Encoding", "identity"))
	packed := h.send(t, http.MethodGet, script, nil, set("Accept-Encoding", "gzip"))
	if packed.header.Get("Content-Encoding") != "gzip" || len(packed.body) > len(plain.body)/3 {
		t.Errorf("packed are %d bytes of %d", len(packed.body), len(plain.body))
	}
	// The harness's client decompresses responses that it requested compressed.
	if got := h.send(t, http.MethodGet, script, nil); !bytes.Equal(plain.body, got.body) {
		t.Errorf("%d bytes are served plain, %d packed", len(plain.body), len(got.body))
	}
	if plain.header.Get("ETag") == packed.header.Get("ETag") || packed.header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("headers are %v and %v", plain.header, packed.header)
	}
	for coding, known := range map[string]answer{"identity": plain, "gzip": packed} {
		again := h.send(t, http.MethodGet, script, nil,
			set("Accept-Encoding", coding), set("If-None-Match", known.header.Get("ETag")))
		if again.status != http.StatusNotModified || len(again.body) != 0 {
			t.Errorf("what is known is answered %d with %d bytes", again.status, len(again.body))
		}
	}
}

// TestNothingIsPrefilled checks that headers have no examples, which pages and tools would send by default: a fixed
// key turns every second request into a conflict, and lenient handling hides typos.
func TestNothingIsPrefilled(t *testing.T) {
	t.Parallel()
	document, err := openapi3.NewLoader().LoadFromData(contract.YAML())
	if err != nil {
		t.Fatal(err)
	}
	for name, parameter := range document.Components.Parameters {
		value := parameter.Value
		if value.Example != nil || len(value.Examples) > 0 || value.Schema.Value.Example != nil || value.Schema.Value.Default != nil {
			t.Errorf("%s is prefilled", name)
		}
	}
}
