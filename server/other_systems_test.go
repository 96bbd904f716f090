package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
)

// foreignRequest is a line of testdata/requests_of_other_systems.jsonl: an input from users of other systems.
type foreignRequest struct {
	ID, About, Method, Path, Body string
	// Headers replaces those of a usual request. $TOKEN stands for a valid token.
	Headers map[string]string
	Status  int
	// Says lists what the body, or the advice, must contain.
	Says []string
	// NoAdvice is true if there must be no advice.
	NoAdvice bool `json:"no_advice"`
}

// What users of other systems send is accepted or explained.
func TestRequestsOfOtherSystems(t *testing.T) {
	t.Parallel()
	h := start(t)
	text, err := os.ReadFile("testdata/requests_of_other_systems.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var sent foreignRequest
		if err := json.Unmarshal(line, &sent); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		got := h.send(t, sent.Method, sent.Path, strings.NewReader(sent.Body),
			set("Authorization", "Bearer "+h.token), set("Content-Type", "application/json"),
			func(request *http.Request) {
				for name, value := range sent.Headers {
					request.Header.Set(name, strings.ReplaceAll(value, "$TOKEN", h.token))
				}
			})
		advice := got.header.Get("Link")
		if got.status != sent.Status || sent.NoAdvice && advice != "" {
			t.Errorf("%s, %s: status is %d, want %d; advice is %q: %s", sent.ID, sent.About, got.status, sent.Status, advice, got.body)
		}
		for _, want := range sent.Says {
			if !strings.Contains(string(got.body)+advice, want) {
				t.Errorf("%s, %s: %q is missing in %s %s", sent.ID, sent.About, want, got.body, advice)
			}
		}
	}
}
