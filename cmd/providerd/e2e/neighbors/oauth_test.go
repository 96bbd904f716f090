//go:build proof

package neighbors_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/providerd/store/storetest/processtest"
)

func authorizers() []neighbor {
	return []neighbor{{
		"OAuth", "each special character and kind of redirect URI; 6 clients at 4 servers", "[Use letters and digits, in at most 72 characters](#oauth).",
		func(t *testing.T) (string, counts) { return "below", tryOAuth(t) },
	}}
}

// attempt is a record that a client uses at a server: it asks for authorization, and sends a code that is unknown.
type attempt struct {
	record
	// Base is the URL of both requests, of which server has the targets.
	Base   string `json:"base"`
	server authorizer
	// isAuthorized and isKnown are the responses to them.
	isAuthorized, isKnown bool
}

// authorizer has the URLs of an OAuth server.
type authorizer struct{ authorize, token string }

// tryOAuth writes a row for each client, with a cell for each server.
func tryOAuth(t *testing.T) counts {
	t.Helper()
	records, c := createForOAuth(t)
	dir := installOAuth(t)
	var attempts []*attempt
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var number int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d/", &number)
		attempts[number].forward(t, w, r)
	}))
	defer proxy.Close()
	servers := startOAuth(t, dir, records)
	for _, client := range []string{"openid-client 6.8.9", "@auth/core 0.41.3", "simple-oauth2 5.1.0", "passport-oauth2 1.8.0", "x/oauth2 v0.38.0", "zitadel/oidc v3.52.0"} {
		cells := []string{client}
		for _, server := range servers {
			first := len(attempts)
			for _, r := range records {
				attempts = append(attempts, &attempt{record: r, server: server, Base: fmt.Sprintf("%s/%d", proxy.URL, len(attempts))})
			}
			use(t, dir, client, attempts[first:])
			cells = append(cells, failures(t, attempts[first:]))
		}
		replaceRow(t, "| "+strings.Join(cells, " | ")+" |")
	}
	return c
}

// use lets a client make its attempts. It does not know the secret and the redirect URI of the one that is wrong.
func use(t *testing.T, dir, client string, attempts []*attempt) {
	t.Helper()
	name, version, _ := strings.Cut(client, " ")
	command := []string{"node", filepath.Join(dir, "main.mjs")}
	if strings.HasPrefix(version, "v") {
		command = []string{filepath.Join(dir, "oauth")}
	}
	given := []attempt{}
	for _, a := range attempts {
		given = append(given, *a)
		if a.Name == "wrong" {
			given[len(given)-1].Secret, given[len(given)-1].Redirect = "wrong", "https://other.example.com/"
		}
	}
	processtest.Run(t, exec.CommandContext(t.Context(), command[0], append(command[1:], name, writeJSON(t, given))...))
}

// failures returns what a client cannot use at a server.
func failures(t *testing.T, attempts []*attempt) string {
	t.Helper()
	failed := map[string][]string{}
	for _, a := range attempts {
		field, label, _ := strings.Cut(a.Name, " ")
		if field == "redirect" && !a.isAuthorized || field != "redirect" && !a.isKnown {
			failed[field] = append(failed[field], label)
		}
	}
	if len(failed["wrong"]) == 0 || len(failed["plain"]) > 0 {
		t.Errorf("the control attempts: %v", failed)
	}
	cells := []string{}
	if id, secret := characters(failed["id"]), characters(failed["secret"]); id == secret && id != "" {
		cells = append(cells, id)
	} else if id+secret != "" {
		cells = append(cells, strings.Trim("id "+id+", secret "+secret, " "))
	}
	if len(failed["generated"]) > 0 {
		cells = append(cells, "a generated secret")
	}
	if len(failed["redirect"]) == len(redirects) {
		failed["redirect"] = nil
	}
	if cells = append(cells, failed["redirect"]...); len(cells) == 0 {
		return "nothing"
	}
	return strings.Join(cells, ", ")
}

// characters abbreviates a list of special characters.
func characters(failed []string) string {
	but := strings.Map(func(r rune) rune {
		if slices.Contains(failed, string(r)) {
			return -1
		}
		return r
	}, specials)
	switch {
	case len(failed) == utf8.RuneCountInString(specials):
		return "all"
	case len(failed) > len(specials)/2:
		return "all except `" + but + "`"
	}
	return strings.Join(failed, " ")
}

// forward sends a request of a client to its server, and notes what the response means.
func (a *attempt) forward(t *testing.T, w http.ResponseWriter, r *http.Request) {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	processtest.Must(t, err)
	isToken, target := strings.HasSuffix(r.URL.Path, "/token"), a.server.authorize+"?"+r.URL.RawQuery
	if isToken {
		target = a.server.token
	}
	request, err := http.NewRequestWithContext(r.Context(), r.Method, target, bytes.NewReader(body))
	processtest.Must(t, err)
	request.Header = r.Header
	request.Header.Del("Accept-Encoding")
	response, err := http.DefaultTransport.RoundTrip(request)
	processtest.Must(t, err)
	text, err := io.ReadAll(response.Body)
	processtest.Must(t, err, response.Body.Close())
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.WriteHeader(response.StatusCode)
	_, _ = w.Write(text)
	if !isToken {
		a.isAuthorized = response.StatusCode < http.StatusBadRequest && !strings.Contains(response.Header.Get("Location"), "error=")
		return
	}
	form, _ := url.ParseQuery(string(body))
	// A server compares the two redirect URIs, and knows the client if it complains only of the code.
	a.isAuthorized = a.isAuthorized && form.Get("redirect_uri") == a.Redirect
	a.isKnown = a.isKnown || strings.Contains(string(text), "invalid_grant") || strings.Contains(string(text), "code parameter")
}
