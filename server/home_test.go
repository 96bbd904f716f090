package server_test

import (
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/server"
)

const browserAccept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

func TestFrontPageLeadsToEveryPage(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.serve(t, func(c *server.Config) { c.Version = "1.2.3" })
	page := h.send(t, http.MethodGet, "/", nil, set("Authorization"), set("Accept", browserAccept))
	if page.status != http.StatusOK || !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") {
		t.Fatalf("%d: %s", page.status, page.body)
	}
	leadsTo := map[string]bool{}
	for _, match := range regexp.MustCompile(`href="(/[^"]*)"`).FindAllSubmatch(page.body, -1) {
		path := string(match[1])
		leadsTo[path] = true
		if got := h.send(t, http.MethodGet, path, nil, set("Authorization")); got.status != http.StatusOK {
			t.Errorf("%s leads to %d", path, got.status)
		}
	}
	for _, path := range []string{
		"/docs/", "/openapi.yaml", "/openapi.json", "/problems/", "/advice/", "/conventions/", "/healthz", "/readyz", "/pages.css",
	} {
		if !leadsTo[path] {
			t.Errorf("nothing leads to %s", path)
		}
	}
	for _, part := range []string{"POST " + oauth2Path, "curl -i " + h.url + oauth2Path, ">1.2.3</span>", ">Ready</strong>"} {
		if !strings.Contains(html.UnescapeString(string(page.body)), part) {
			t.Errorf("%q is not in %s", part, page.body)
		}
	}
}

func TestFrontPageReportsReadiness(t *testing.T) {
	t.Parallel()
	h := start(t)
	server := h.serve(t)
	server.BeginDrain()
	page := h.send(t, http.MethodGet, "/", nil, set("Accept", browserAccept))
	if page.status != http.StatusOK || !strings.Contains(string(page.body), ">Not ready</strong>") {
		t.Errorf("%d: %s", page.status, page.body)
	}
}

func TestConventionsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	page := string(start(t).send(t, http.MethodGet, "/conventions/", nil, set("Authorization")).body)
	for _, part := range []string{"<h2>Responses</h2>", "404, 405, 401, 429, 403, 406", "<code>X-Request-Id</code>"} {
		if !strings.Contains(page, part) {
			t.Errorf("%q is not in %s", part, page)
		}
	}
}

func TestFrontPageAnswersProgramsInJSON(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, accept := range []string{"*/*", "application/json", ""} {
		got := h.send(t, http.MethodGet, "/", nil, set("Accept", accept))
		paths := map[string]string{}
		if err := json.Unmarshal(got.body, &paths); err != nil || got.header.Get("Content-Type") != "application/json" {
			t.Fatalf("Accept %q: %v: %s", accept, err, got.body)
		}
		if paths["reference"] != "/docs/" || paths["openapi_json"] != "/openapi.json" || got.header.Get("Vary") != "Accept" {
			t.Errorf("Accept %q: %s", accept, got.body)
		}
	}
	h.send(t, http.MethodPost, "/", nil).problem(t, http.StatusMethodNotAllowed, "method-not-allowed")
}

func TestPagesLoadTheirStyleSheetAlone(t *testing.T) {
	t.Parallel()
	h := start(t)
	style := h.send(t, http.MethodGet, "/pages.css", nil)
	if !strings.HasPrefix(style.header.Get("Content-Type"), "text/css") ||
		!strings.Contains(string(style.body), "prefers-color-scheme: dark") {
		t.Errorf("%s: %s", style.header.Get("Content-Type"), style.body)
	}
	for _, path := range []string{"/", "/advice/", "/conventions/", "/problems/", "/problems/overloaded"} {
		page := h.send(t, http.MethodGet, path, nil, set("Accept", browserAccept))
		if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'; style-src 'self'; ") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
		for _, part := range []string{`<meta name="viewport"`, `<link rel="stylesheet" href="/pages.css">`} {
			if !strings.Contains(string(page.body), part) {
				t.Errorf("%s does not have %s", path, part)
			}
		}
		for _, match := range regexp.MustCompile(`(?:href|src)="([^"]*)"|<(?:style|script)| style=`).FindAllSubmatch(page.body, -1) {
			if target := string(match[1]); target != "data:," && !regexp.MustCompile("^/[^/]|^/$").MatchString(target) {
				t.Errorf("%s has %s, which its policy does not let it load", path, match[0])
			}
		}
	}
}
