package main

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	_ "unsafe" // for the link to kin-openapi

	"github.com/getkin/kin-openapi/openapi3"

	"example.com/providerd/gen/contract"
)

// compiledPatterns is the cache of kin-openapi, which gives no access to it.
//
//go:linkname compiledPatterns github.com/getkin/kin-openapi/openapi3.compiledPatterns
var compiledPatterns sync.Map //nolint:gochecknoglobals // It is a variable of kin-openapi.

// TestYardstickKeepsRegexp proves that the yardstick does not profit from the server's matchers of patterns, which
// kin-openapi would share with it within a process.
func TestYardstickKeepsRegexp(t *testing.T) {
	document, err := openapi3.NewLoader().LoadFromData(contract.YAML())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := newYardstick(document)
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v3/providers/oauth2/", strings.NewReader(
		`{"name": "Intranet", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01", "redirect_uris": "https://app.example.com/"}`))
	request.Header.Set("Content-Type", "application/json")
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	if response.Code != http.StatusCreated {
		t.Fatalf("%d: %s", response.Code, response.Body)
	}
	count := 0
	compiledPatterns.Range(func(pattern, matcher any) bool {
		count++
		if _, ok := matcher.(*regexp.Regexp); !ok {
			t.Errorf("%s is matched by %T", pattern, matcher)
		}
		return true
	})
	if count < 4 {
		t.Errorf("%d patterns were matched", count)
	}
}
