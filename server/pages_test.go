package server_test

import (
	"encoding/json"
	"html"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"example.com/providerd/gen/api"
	"example.com/providerd/gen/contract"
)

func TestContractIsWhatIsGenerated(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != string(contract.YAML()) {
		t.Error("gen/ is not what openapi.yaml gives: run make gen")
	}
}

func TestContractIsServed(t *testing.T) {
	t.Parallel()
	h := start(t)
	if got := h.send(t, http.MethodGet, "/openapi.yaml", nil); string(got.body) != string(contract.YAML()) ||
		got.header.Get("Content-Type") != "application/yaml" {
		t.Errorf("status is %d, %s", got.status, got.header.Get("Content-Type"))
	}
	got := h.send(t, http.MethodGet, "/openapi.json", nil)
	document, err := openapi3.NewLoader().LoadFromData(got.body)
	if err != nil || !json.Valid(got.body) || got.header.Get("Content-Type") != "application/json" {
		t.Fatalf("status is %d, %v", got.status, err)
	}
	if err := document.Validate(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestEveryProblemHasAPage(t *testing.T) {
	t.Parallel()
	h := start(t)
	document, err := openapi3.NewLoader().LoadFromData(contract.YAML())
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]bool{"/problems/not-found": true, "/problems/method-not-allowed": true}
	for _, example := range document.Components.Examples {
		value, _ := example.Value.Value.(map[string]any)
		if uri, ok := value["type"].(string); ok && strings.HasPrefix(uri, "/problems/") {
			pages[uri] = true
			if got := h.send(t, http.MethodGet, uri, nil); !strings.Contains(string(got.body), value["title"].(string)) {
				t.Errorf("%s: page and example differ in the title", uri)
			}
		}
	}
	if len(pages) != 18 {
		t.Errorf("%d problems are known, want 18", len(pages))
	}
	list := h.send(t, http.MethodGet, "/problems/", nil, set("Authorization"))
	links := regexp.MustCompile(`href="(/problems/[a-z-]+)"`).FindAllSubmatch(list.body, -1)
	if list.status != http.StatusOK || len(links) != len(pages) {
		t.Errorf("%d: %d problems are listed, want %d", list.status, len(links), len(pages))
	}
	for _, link := range links {
		pages[string(link[1])] = true
	}
	examples := regexp.MustCompile(`(?s)<pre>(.*)</pre>`)
	for uri := range pages {
		got := h.send(t, http.MethodGet, uri, nil)
		var example api.Problem
		shown := examples.FindSubmatch(got.body)
		if shown == nil || json.Unmarshal([]byte(html.UnescapeString(string(shown[1]))), &example) != nil ||
			example.Type != uri || example.Detail == "" {
			t.Errorf("%s has no example: %s", uri, got.body)
		}
		if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: status is %d, %s", uri, got.status, got.header.Get("Content-Type"))
		}
	}
	h.send(t, http.MethodGet, "/problems/x", nil).problem(t, http.StatusNotFound, "not-found")
}

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	h := start(t)
	for path, want := range map[string]string{"/healthz": `{"status":"ok"}`, "/readyz": `{"status":"ready"}`} {
		if got := h.send(t, http.MethodGet, path, nil); strings.TrimSpace(string(got.body)) != want {
			t.Errorf("%s answers %d %s", path, got.status, got.body)
		}
		if got := h.send(t, http.MethodHead, path, nil); got.status != http.StatusOK || len(got.body) != 0 {
			t.Errorf("HEAD %s answers %d %s", path, got.status, got.body)
		}
		got := h.send(t, http.MethodPost, path, nil)
		got.problem(t, http.StatusMethodNotAllowed, "method-not-allowed")
		if allow := got.header.Get("Allow"); !strings.Contains(allow, "GET") || !strings.Contains(allow, "HEAD") {
			t.Errorf("Allow is %q", allow)
		}
	}
}
