//go:build proof

package neighbors_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// record has the fields of a record that clients use. What is tried is in its name: a field and a value.
type record struct {
	Name     string `json:"name"`
	Flow     string `json:"authorization_flow"`
	ID       string `json:"client_id"`
	Secret   string `json:"client_secret,omitempty"`
	Redirect string `json:"redirect_uris"`
}

// attempt is a record that a client uses at a server: it asks for authorization, and sends a code that is unknown.
type attempt struct {
	record
	// Base is the URL of both requests, without /authorize and /token.
	Base string `json:"base"`
	// isAsked is whether the first was sent. isAuthorized and isKnown are the responses.
	isAsked, isAuthorized, isKnown bool
}

// specials are printable ASCII without letters and digits, and a letter beyond ASCII.
const specials = " !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~é"

// recordsOfAllKinds returns records that are alike except for what is tried.
func recordsOfAllKinds() []record {
	plain := record{
		"plain", "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01", "plain", "Zt4vQy8LmN1xRw6KpJ3sHd9Fb2Cg7TuE",
		"https://app.example.com/callback",
	}
	records := []record{plain}
	add := func(name string, change func(*record)) {
		changed := plain
		changed.Name, changed.ID = name, fmt.Sprintf("client%d", len(records))
		change(&changed)
		records = append(records, changed)
	}
	add("wrong", func(*record) {})
	add("generated", func(r *record) { r.Secret = "" })
	for special := range strings.SplitSeq(specials, "") {
		add("id "+special, func(r *record) { r.ID += special + "z" })
		add("secret "+special, func(r *record) { r.Secret += special + "z" })
	}
	for _, redirect := range [][2]string{
		{"no path", "https://app.example.com"},
		{"port 443", "https://app.example.com:443/callback"},
		{"upper case", "https://App.example.com/callback"},
		{"`..`", "https://app.example.com/a/../callback"},
		{"query", "https://app.example.com/callback?tenant=a"},
		{"`+`", "https://app.example.com/callback?tenant=a+b"},
		{"`%20`", "https://app.example.com/a%20b"},
		{"`,`", "https://app.example.com/a,b"},
		{"http", "http://app.example.com/callback"},
		{"localhost", "http://localhost:8765/callback"},
		{"127.0.0.1", "http://127.0.0.1:8765/callback"},
		{"\\[::1]", "http://[::1]:8765/callback"},
		{"app", "com.example.app:/callback"},
	} {
		add("redirect "+redirect[0], func(r *record) { r.Redirect = redirect[1] })
	}
	return records
}

// failures returns what a client cannot use at a server.
func failures(t *testing.T, attempts []*attempt) string {
	t.Helper()
	failed := map[string][]string{}
	for _, a := range attempts {
		field, label, _ := strings.Cut(a.Name, " ")
		// A client that chooses its redirect URI itself asks for no authorization.
		isUsed, isAuthorized := a.isKnown, a.isAuthorized || !a.isAsked
		switch field {
		case "plain":
			isUsed = a.isKnown && isAuthorized
		case "wrong":
			isUsed = a.isKnown || a.isAuthorized
		case "redirect":
			isUsed = isAuthorized
		}
		if !isUsed {
			failed[field] = append(failed[field], label)
		}
	}
	processtest.Expect(t, len(failed["wrong"]) > 0 && len(failed["plain"]) == 0, "the control attempts: %v", failed)
	cells := []string{characters(failed["id"])}
	if secret := characters(failed["secret"]); secret != cells[0] {
		cells = []string{"id " + cells[0], "secret " + secret}
	}
	if len(failed["generated"]) > 0 {
		cells = append(cells, "a generated secret")
	}
	cells = append(cells, failed["redirect"]...)
	cells = slices.DeleteFunc(cells, func(cell string) bool { return cell == "" })
	return cmp.Or(strings.Join(cells, ", "), "nothing")
}

// characters abbreviates a list of special characters.
func characters(failed []string) string {
	others := slices.DeleteFunc(strings.Split(specials, ""), func(c string) bool { return slices.Contains(failed, c) })
	switch {
	case len(others) == 0:
		return "all"
	case len(others) < len(failed):
		return "all except `" + strings.Join(others, "") + "`"
	}
	return strings.Join(failed, " ")
}
