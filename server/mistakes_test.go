package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"example.com/providerd/gen/model"
	"example.com/providerd/store/storetest/processtest"
)

// mistake is a typical mistake of a new user.
type mistake struct {
	title, method, path, body string
	change                    func(*http.Request)
}

// mistakes returns typical mistakes, each in an otherwise correct request.
func mistakes() []mistake {
	none := func(*http.Request) {}
	oauth2 := func(title, body string) mistake { return mistake{title, http.MethodPost, oauth2Path, body, none} }
	directory := func(title, body string) mistake {
		return mistake{title, http.MethodPost, workspaceDirectoryPath, body, none}
	}
	field := func(title, member string) mistake {
		return oauth2(title, `{"name":"Shop","authorization_flow":"`+flow+`",`+member+`}`)
	}
	entry := func(title, member string) mistake {
		return directory(title, `{"name":"Staff","delegated_subject":"admin@example.com",`+
			`"default_group_email_domain":"example.com",`+member+`}`)
	}
	valid := `{"name":"Shop","authorization_flow":"` + flow + `"}`
	return []mistake{
		field("the singular of a field", `"redirect_uri":"https://shop.example.com/callback"`),
		field("camel case", `"clientId":"shop"`),
		field("a hyphen", `"client-secret":"s"`),
		field("a typo", `"sub_mdoe":"user_uuid"`),
		oauth2("letters transposed in a short name", `{"anme":"Shop","authorization_flow":"`+flow+`"}`),
		oauth2("a word cut short", `{"name":"Shop","auth_flow":"`+flow+`"}`),
		field("one word of a name", `"secret":"s"`),
		field("the words of another API", `"callback_url":"https://shop.example.com/callback"`),
		field("its words in camel case", `"callbackURLs":"https://shop.example.com/callback"`),
		field("the type of a client in another system", `"publicClient":true,"isPublic":true,"public":true`),
		field("other names of a field", `"client_name":"Shop","callbacks":"a:b","jwt_federation_sources":[]`),
		entry("a name of the other kind in another system", `"credentials":{},"publicClient":true`),
		field("a field of the other kind", `"delegated_subject":"admin@example.com"`),
		entry("a field of the other kind", `"credentials":{},"clientId":"shop"`),
		field("a field of the answer", `"pk":17`),
		field("a field of another API", `"grant_types":["code"]`),
		field("a list of URIs", `"redirect_uris":["https://shop.example.com/callback"]`),
		field("a URI without a scheme", `"redirect_uris":"https://shop.example.com/a\nshop.example.com/b"`),
		field("a number for a duration", `"access_token_validity":300`),
		field("another form of a duration", `"access_token_validity":"5m"`),
		field("another case of a choice", `"client_type":"Public"`),
		field("a boolean in quotes", `"include_claims_in_id_token":"true"`),
		field("null", `"client_id":null`),
		field("a slug for a UUID", `"signing_key":"my-key"`),
		oauth2("a required field left out", `{"name":"Shop"}`),
		entry("JSON in a string", `"credentials":"{\"type\":\"service_account\"}"`),
		directory("a name for an e-mail address", `{"name":"Staff","credentials":{},"delegated_subject":"admin",`+
			`"default_group_email_domain":"example.com"}`),
		directory("the fields of the other kind", valid),
		oauth2("a comma at the end", `{"name":"Shop","authorization_flow":"`+flow+"\",\n}"),
		oauth2("single quotes", `{'name':'Shop'}`),
		oauth2("a comment", "{\n  // The shop\n  \"name\":\"Shop\"}"),
		oauth2("a list of bodies", "["+valid+"]"),
		oauth2("no body", ""),
		{"a form", http.MethodPost, oauth2Path, "name=Shop", set("Content-Type", "application/x-www-form-urlencoded")},
		{"a password", http.MethodPost, oauth2Path, valid, set("Authorization", "Basic c2hvcDpzZWNyZXQ=")},
		{"no final slash", http.MethodPost, strings.TrimSuffix(oauth2Path, "/"), valid, none},
		{"no kind", http.MethodPost, "/api/v3/providers/", valid, none},
		{"another version", http.MethodPost, "/api/v2/providers/oauth2/", valid, none},
		{"the singular in a path", http.MethodPost, "/api/v3/provider/oauth2/", valid, none},
		{"a hyphen in a path", http.MethodPost, "/api/v3/providers/workspace-directory/", valid, none},
		{"no base path", http.MethodPost, "/providers/oauth2", valid, none},
		{"the base path twice", http.MethodPost, "/api/v3" + oauth2Path, valid, none},
		{"GET", http.MethodGet, oauth2Path, "", none},
		{"POST to a page", http.MethodPost, "/healthz", valid, none},
		{"PUT", http.MethodPut, oauth2Path, valid, none},
		{"GET of a record", http.MethodGet, oauth2Path + "17/", "", none},
		{"DELETE of a record", http.MethodDelete, oauth2Path + "17/", "", none},
	}
}

// TestMistakesAreExplained compares the responses with those in testdata, which PROVIDERD_WRITE_GOLDEN=1 writes.
func TestMistakesAreExplained(t *testing.T) {
	t.Parallel()
	const path = "testdata/mistakes.txt"
	h := start(t)
	var got strings.Builder
	for _, sent := range mistakes() {
		answer := h.send(t, sent.method, sent.path, strings.NewReader(sent.body),
			set("Authorization", "Bearer "+h.token), set("Content-Type", "application/json"), sent.change)
		var problem model.Problem
		if err := json.Unmarshal(answer.body, &problem); err != nil {
			t.Fatalf("%s: %v: %s", sent.title, err, answer.body)
		}
		fmt.Fprintf(&got, "# %s\n%s %s\n%s\n%d %s\n", sent.title, sent.method, sent.path, sent.body, answer.status, problem.Detail)
		if problem.Errors != nil {
			for _, violation := range *problem.Errors {
				fmt.Fprintf(&got, "  %s %s: %s\n", violation.Pointer, violation.Code, violation.Detail)
			}
		}
		got.WriteString("\n")
	}
	if os.Getenv("PROVIDERD_WRITE_GOLDEN") != "" {
		processtest.Must(t, os.WriteFile(path, []byte(got.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	if err != nil || got.String() != string(want) {
		t.Errorf("the answers are %v\n%s", err, got.String())
	}
}

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
	processtest.Must(t, err)
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
