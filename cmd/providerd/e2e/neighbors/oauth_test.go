//go:build proof

package neighbors_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// tryOAuth writes a row for each client, with a cell for each server.
func tryOAuth(t *testing.T, _ string) counts {
	t.Helper()
	records, c := createForOAuth(t)
	dir, servers := t.TempDir(), []*providerdtest.Server{}
	shell(t, dir, `cp "$ROOT"/cmd/providerd/e2e/neighbors/testdata/oauth/* .; . ./install`)
	for _, n := range []string{"oidc-provider 9.13.3", "oauth2-server 5.3.0", "fosite v0.49.0", "zitadel/oidc v3.52.0"} {
		servers = append(servers, providerdtest.MustStart(t, oauthProgram(t, dir, n, records)))
	}
	for _, client := range []string{
		"openid-client 6.8.9", "@auth/core 0.41.3", "simple-oauth2 5.1.0", "passport-oauth2 1.8.0", "x/oauth2 v0.38.0",
		"zitadel/oidc v3.52.0",
	} {
		cells := []string{client}
		for _, server := range servers {
			target := processtest.Try(url.Parse(server.URL)).Must(t)
			cells = append(cells, failures(t, use(t, dir, client, target, records)))
		}
		updateRow(t, cells...)
	}
	return c
}

// createForOAuth creates records, and returns them as a platform reads them.
func createForOAuth(t *testing.T) (read []record, c counts) {
	t.Helper()
	dir, records := t.TempDir(), recordsOfAllKinds()
	server := providerdtest.Serve(t, dir)
	for _, r := range records {
		body := processtest.Try(json.Marshal(r)).Must(t)
		server.ExpectPost(t, http.DefaultClient, http.StatusCreated, providerdtest.OAuth2Path, string(body), "")
	}
	list := providerdtest.Command(t.Context(), dir, "provider", "list", "--reveal", "--output", "json")
	processtest.Must(t, json.Unmarshal([]byte(providerdtest.Output(t, list)), &read))
	for i, sent := range records {
		if sent.Secret = cmp.Or(sent.Secret, read[i].Secret); read[i] != sent {
			c.lost++
		}
	}
	c.acknowledged = len(records)
	return read, c
}

// oauthProgram returns the command of a client or a server.
func oauthProgram(t *testing.T, dir, name string, listed any) *exec.Cmd {
	t.Helper()
	list := string(processtest.Try(json.Marshal(listed)).Must(t))
	return exec.CommandContext(t.Context(), filepath.Join(dir, "run"), append(strings.Fields(name), list)...)
}

// use lets a client make an attempt with each record. It does not know the secret and the redirect URI of one.
func use(t *testing.T, dir, client string, server *url.URL, records []record) (attempts []*attempt) {
	t.Helper()
	proxies := http.NewServeMux()
	listener := httptest.NewServer(proxies)
	defer listener.Close()
	for i, r := range records {
		path := fmt.Sprintf("/%d", i)
		a := &attempt{record: r, Base: listener.URL + path}
		if r.Name == "wrong" {
			a.Secret, a.Redirect = "wrong", "https://other.example.com/"
		}
		attempts = append(attempts, a)
		proxies.Handle(path+"/", http.StripPrefix(path, a.proxy(server)))
	}
	processtest.Run(t, oauthProgram(t, dir, client, attempts))
	return attempts
}

// proxy returns a proxy that sends the requests of an attempt to a server, and notes what the responses mean.
func (a *attempt) proxy(server *url.URL) *httputil.ReverseProxy {
	var form url.Values
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(server)
			r.Out.Header.Del("Accept-Encoding")
			body, _ := io.ReadAll(r.In.Body)
			form, _ = url.ParseQuery(string(body))
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
		},
		ModifyResponse: func(response *http.Response) error {
			text, err := io.ReadAll(response.Body)
			response.Body = io.NopCloser(bytes.NewReader(text))
			if response.Request.URL.Path != "/token" {
				isError := strings.Contains(response.Header.Get("Location"), "error=")
				a.isAsked, a.isAuthorized = true, response.StatusCode < http.StatusBadRequest && !isError
				return err
			}
			// A server compares the two redirect URIs, and knows the client if it complains only of the code.
			a.isAuthorized = a.isAuthorized && form.Get("redirect_uri") == a.Redirect
			a.isKnown = a.isKnown || regexp.MustCompile("invalid_grant|code parameter").Match(text)
			return err
		},
	}
}
