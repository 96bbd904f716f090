package server_test

import (
	"bytes"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/server"
	"example.com/providerd/store/storetest/processtest"
)

// pageScript is the only script of a page.
const pageScript = `<script type="module" src="/pages.js"></script>`

const browserAccept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// TestPages reads what needs no token as a browser does, and follows the links of the front page.
func TestPages(t *testing.T) {
	t.Parallel()
	const page, script = "text/html", "text/javascript"
	h := start(t)
	h.serve(t, func(c *server.Config) { c.Version = "1.2.3" })
	front := h.send(t, http.MethodGet, "/", nil, set("Accept", browserAccept))
	for path, want := range map[string]struct {
		isLinked    bool
		contentType string
		parts       []string
	}{
		"/":             {false, page, []string{"POST " + oauth2Path, "curl -i '" + h.url + oauth2Path + "'", ">1.2.3</span>", ">Ready</strong>"}},
		"/advice/":      {true, page, nil},
		"/conventions/": {true, page, []string{"<h2>Responses</h2>", "404, 405, 401, 429, 403, 406", "<code>X-Request-Id</code>"}},
		"/problems/":    {true, page, nil}, "/problems/overloaded": {false, page, nil},
		"/problems/validation-failed": {false, page, []string{"<td><code>blank</code></td>"}},
		"/pages.js":                   {false, script, nil},
		"/docs/":                      {true, page, []string{`<script src="scalar.js">`}},
		"/docs/scalar.js":             {false, script, nil},
		"/docs/reference.css":         {false, "text/css", nil}, "/docs/reference.js": {false, script, nil},
		"/pages.css":    {true, "text/css", []string{"prefers-color-scheme: dark"}},
		"/openapi.yaml": {true, "application/yaml", nil}, "/openapi.json": {true, "application/json", nil},
		"/healthz": {true, "application/json", []string{`{"status":"ok"}`}},
		"/readyz":  {true, "application/json", []string{`{"status":"ready"}`}},
	} {
		linked := strings.Contains(string(front.body), `href="`+path+`"`)
		processtest.Expect(t, linked == want.isLinked || path == "/", "the front page leads to %s: %v", path, linked)
		got := h.send(t, http.MethodGet, path, nil, set("Accept", browserAccept), set("Origin", "https://other.example.com"))
		if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), want.contentType) || len(got.body) == 0 {
			t.Errorf("%s: %d, %s, %d bytes", path, got.status, got.header.Get("Content-Type"), len(got.body))
		}
		for _, part := range want.parts {
			processtest.Contains(t, html.UnescapeString(string(got.body)), part)
		}
		if want.contentType == page && path != "/docs/" {
			checkStyle(t, path, got)
		}
		processtest.Expect(t, want.contentType != page || path == "/" ||
			strings.Contains(string(got.body), `<a href="/">providerd</a>`), "%s does not lead to the front page", path)
		checkSecurityHeaders(t, path, got.header)
		h.checkMethods(t, path)
	}
	for _, match := range regexp.MustCompile(`href="(/[^"]*)"`).FindAllSubmatch(front.body, -1) {
		status := h.send(t, http.MethodGet, string(match[1]), nil).status
		processtest.Expect(t, status == http.StatusOK, "%s leads to %d", match[1], status)
	}
	for _, path := range []string{"/advice", "/conventions", "/docs", "/problems"} {
		got := h.send(t, http.MethodGet, path, nil)
		processtest.Expect(t, got.status == http.StatusOK, "%s does not lead to %s/: %d", path, path, got.status)
	}
	for _, path := range []string{"/nowhere", "/docs/scalar.js.gz", "/docs/../keyset.json", "/problems/x"} {
		got := h.send(t, http.MethodGet, path, nil)
		got.problem(t, http.StatusNotFound, "not-found")
		checkSecurityHeaders(t, path, got.header)
	}
}

// TestWrongPathsInABrowser checks that a wrong path leads a person to the pages, and a program to the nearest path.
func TestWrongPathsInABrowser(t *testing.T) {
	h := startParallel(t)
	for path, status := range map[string]int{
		"/health": http.StatusNotFound, "/swagger/": http.StatusNotFound, "/api/v3/": http.StatusNotFound,
		"/if/admin/": http.StatusNotFound, oauth2Path: http.StatusMethodNotAllowed,
	} {
		got := h.send(t, http.MethodGet, path, nil, set("Accept", browserAccept))
		processtest.Expect(t, got.status == status && strings.HasPrefix(got.header.Get("Content-Type"), "text/html") &&
			strings.Contains(string(got.body), `<a href="/docs/">`) && (got.header.Get("Allow") != "") == (path == oauth2Path),
			"%s: %d, %v: %s", path, got.status, got.header, got.body)
		checkStyle(t, path, got)
		checkSecurityHeaders(t, path, got.header)
		h.send(t, http.MethodPut, path, nil, set("Accept", browserAccept)).problem(t, status, map[int]string{http.StatusNotFound: "not-found", http.StatusMethodNotAllowed: "method-not-allowed"}[status])
	}
	detail := h.post(t, "/api/providers/oauth2/", "{}").problem(t, http.StatusNotFound, "not-found").Detail
	processtest.Contains(t, detail, "POST to "+oauth2Path+",")
	processtest.Equal(t, h.send(t, http.MethodGet, "/favicon.ico", nil).status, http.StatusNoContent, "status of the icon")
}

// checkStyle checks that a page loads its style sheet and its script, and nothing that its policy does not allow.
func checkStyle(t *testing.T, path string, page answer) {
	policy := page.header.Get("Content-Security-Policy")
	processtest.Contains(t, policy, "default-src 'none'; style-src 'self'; script-src 'self'; ")
	for _, part := range []string{`<meta name="viewport"`, `<link rel="stylesheet" href="/pages.css">`, pageScript} {
		processtest.Expect(t, strings.Contains(string(page.body), part), "%s does not have %s", path, part)
	}
	for _, match := range regexp.MustCompile(`(?:href|src)="([^"]*)"|<(?:style|script)| style=`).FindAllSubmatch(
		bytes.ReplaceAll(page.body, []byte(pageScript), nil), -1) {
		if target := string(match[1]); target != "data:," && !regexp.MustCompile("^/[^/]|^/$").MatchString(target) {
			t.Errorf("%s has %s, which its policy does not let it load", path, match[0])
		}
	}
}

func checkSecurityHeaders(t *testing.T, path string, header http.Header) {
	t.Helper()
	if cache := header.Get("Cache-Control"); cache != "no-store" && (cache != "no-cache" || header.Get("ETag") == "") {
		t.Errorf("%s: Cache-Control is %q", path, cache)
	}
	policy := header.Get("Content-Security-Policy")
	isReference := strings.HasPrefix(path, "/docs/") && !strings.Contains(path, "keyset") && !strings.HasSuffix(path, ".gz")
	hasScript := isReference || strings.HasPrefix(path, "/pages.") || strings.HasPrefix(header.Get("Content-Type"), "text/html")
	if !strings.HasPrefix(policy, "default-src 'none'; ") || !strings.HasSuffix(policy, "; frame-ancestors 'none'") ||
		strings.Contains(policy, "; script-src 'self'; ") != hasScript || strings.Contains(policy, "script-src") != hasScript ||
		strings.Contains(policy, "; connect-src 'self'; ") != isReference {
		t.Errorf("%s: the policy is %q", path, policy)
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
		"Access-Control-Allow-Origin": map[bool]string{true: "*"}[strings.HasPrefix(path, "/openapi.")],
	} {
		processtest.Expect(t, header.Get(name) == want, "%s: %s is %q", path, name, header.Get(name))
	}
}

// checkMethods checks that a page can only be read.
func (h *harness) checkMethods(t *testing.T, path string) {
	if got := h.send(t, http.MethodHead, path, nil); got.status != http.StatusOK || len(got.body) != 0 {
		t.Errorf("HEAD %s answers %d %s", path, got.status, got.body)
	}
	got := h.send(t, http.MethodPost, path, nil)
	got.problem(t, http.StatusMethodNotAllowed, "method-not-allowed")
	if allow := got.header.Get("Allow"); !strings.Contains(allow, "GET") || !strings.Contains(allow, "HEAD") {
		t.Errorf("%s: Allow is %q", path, allow)
	}
}

// The front page and the metrics report that a server is draining, as /readyz does.
func TestReadinessWhileDraining(t *testing.T) {
	h := startParallel(t)
	handler, registry := h.startCounted(t, 1)
	handler.BeginDrain()
	page := h.send(t, http.MethodGet, "/", nil, set("Accept", browserAccept))
	processtest.Expect(t, page.status == http.StatusOK && strings.Contains(string(page.body), ">Not ready</strong>"),
		"%d: %s", page.status, page.body)
	ready := seriesOf(t, registry)["providerd_ready"]
	processtest.Expect(t, ready == 0, "the metric is %v", ready)
}

func TestFrontPageAnswersProgramsInJSON(t *testing.T) {
	h := startParallel(t)
	for _, accept := range []string{"*/*", "application/json", ""} {
		got := h.send(t, http.MethodGet, "/", nil, set("Accept", accept))
		paths := map[string]string{}
		if err := json.Unmarshal(got.body, &paths); err != nil || got.header.Get("Content-Type") != "application/json" {
			t.Fatalf("Accept %q: %v: %s", accept, err, got.body)
		}
		processtest.Expect(t, paths["reference"] == "/docs/" && paths["openapi_json"] == "/openapi.json" &&
			got.header.Get("Vary") == "Accept", "Accept %q: %s", accept, got.body)
	}
}

// TestBrowsersStayOnHTTPS checks that browsers use only HTTPS for a day, except for hosts on their own machine.
func TestBrowsersStayOnHTTPS(t *testing.T) {
	h := startParallel(t)
	secure := httptest.NewTLSServer(h.newServer(t))
	t.Cleanup(secure.Close)
	plain := h.url
	h.client = secure.Client()
	for _, c := range []struct{ url, host, method, want string }{
		{secure.URL, "providerd.example.com:8443", http.MethodGet, "max-age=86400"},
		{secure.URL, "providerd.example.com", http.MethodHead, "max-age=86400"},
		{secure.URL, "providerd.example.com", http.MethodPost, ""},
		{secure.URL, "localhost:8443", http.MethodGet, ""},
		{secure.URL, "providerd.localhost", http.MethodGet, ""},
		{plain, "providerd.example.com", http.MethodGet, ""},
	} {
		h.url = c.url
		got := h.send(t, c.method, "/", nil, func(request *http.Request) { request.Host = c.host })
		processtest.Equal(t, got.header.Get("Strict-Transport-Security"), c.want, "header of %s %s", c.method, c.host)
	}
}

func TestReferencePageIsSentOnceAndPacked(t *testing.T) {
	h := startParallel(t)
	const script = "/docs/scalar.js"
	plain := h.send(t, http.MethodGet, script, nil, set("Accept-Encoding", "identity"))
	packed := h.send(t, http.MethodGet, script, nil, set("Accept-Encoding", "gzip"))
	processtest.Expect(t, packed.header.Get("Content-Encoding") == "gzip" && len(packed.body) <= len(plain.body)/3,
		"packed are %d bytes of %d", len(packed.body), len(plain.body))
	// The harness's client decompresses responses that it requested compressed.
	unpacked := h.send(t, http.MethodGet, script, nil).body
	processtest.Expect(t, bytes.Equal(plain.body, unpacked), "%d bytes plain, %d packed", len(plain.body), len(unpacked))
	processtest.Expect(t, plain.header.Get("ETag") != packed.header.Get("ETag") &&
		packed.header.Get("Vary") == "Accept-Encoding", "headers are %v and %v", plain.header, packed.header)
	for coding, known := range map[string]answer{
		"identity": plain, "gzip;q=0": plain, "gzip2": plain, "gzip": packed, "br, GZIP;q=0.5": packed,
	} {
		again := h.send(t, http.MethodGet, script, nil,
			set("Accept-Encoding", coding), set("If-None-Match", known.header.Get("ETag")))
		processtest.Expect(t, again.status == http.StatusNotModified && len(again.body) == 0,
			"what is known is answered %d with %d bytes", again.status, len(again.body))
	}
}
