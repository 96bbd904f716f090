//go:build proof

package neighbors_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
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

const plainSecret, plainRedirect = "Zt4vQy8LmN1xRw6KpJ3sHd9Fb2Cg7TuE", "https://app.example.com/callback"

// specials are printable ASCII without letters and digits, and a letter beyond ASCII.
const specials = " !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~é"

//nolint:gochecknoglobals // A table that is only read.
var redirects = []struct{ label, uri string }{
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
}

// recordsOfAllKinds returns records that are alike except for what is tried.
func recordsOfAllKinds() []record {
	plain := record{"plain", "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01", "plain", plainSecret, plainRedirect}
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
	for _, redirect := range redirects {
		add("redirect "+redirect.label, func(r *record) { r.Redirect = redirect.uri })
	}
	return records
}

// createForOAuth creates records, and returns them as a platform reads them.
func createForOAuth(t *testing.T) (read []record, c counts) {
	t.Helper()
	dir, records := t.TempDir(), recordsOfAllKinds()
	server := providerdtest.Serve(t, dir)
	for _, r := range records {
		body, err := json.Marshal(r)
		processtest.Must(t, err)
		server.ExpectPost(t, http.DefaultClient, http.StatusCreated, providerdtest.OAuth2Path, string(body), "")
	}
	list := providerdtest.Command(t.Context(), dir, "provider", "list", "--reveal", "--output", "json")
	processtest.Must(t, json.Unmarshal([]byte(providerdtest.Output(t, list)), &read))
	for i, sent := range records {
		if sent.Secret == "" {
			sent.Secret = read[i].Secret
		}
		if read[i] != sent {
			c.lost++
		}
	}
	c.acknowledged = len(records)
	return read, c
}

// startOAuth starts the four servers.
func startOAuth(t *testing.T, dir string, records []record) []authorizer {
	t.Helper()
	list := writeJSON(t, records)
	printedURL := func(program string, arguments ...string) (url string) {
		child := launch(t, program, append(arguments, list)...)
		processtest.WaitUntil(t, program+" listens", func() bool {
			url = regexp.MustCompile(`(?m)^http\S+$`).FindString(child.Stdout.String())
			return url != ""
		})
		return url
	}
	node, oauth := filepath.Join(dir, "main.mjs"), filepath.Join(dir, "oauth")
	oidc, server := printedURL("node", node, "oidc-provider"), printedURL("node", node, "oauth2-server")
	fosite, zitadel := printedURL(oauth, "fosite"), printedURL(oauth, "zitadel")
	return []authorizer{
		{oidc + "/auth", oidc + "/token"},
		{server + "/auth", server + "/token"},
		{fosite + "/authorize", fosite + "/token"},
		{zitadel + "/auth", zitadel + "/oauth/token"},
	}
}

func writeJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	processtest.Must(t, err)
	return write(t, "file.json", string(text))
}

// installOAuth installs the programs of testdata/oauth.
func installOAuth(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	processtest.Must(t, os.CopyFS(dir, os.DirFS("testdata/oauth")))
	install(t, dir, providerdtest.ReadFile(t, "cmd/providerd/e2e/neighbors/testdata/oauth/install"))
	return dir
}
