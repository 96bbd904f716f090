package serving_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestRequestsOfOtherSystems sends what users of other systems and their tools send. The response must say what is right.
func TestRequestsOfOtherSystems(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir)
	token := providerdtest.Token(t, dir)
	const named = `{"name": "NAME", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}`
	for title, c := range map[string]struct {
		query, cookie, name string
		status              int
		says                string
	}{
		"dry_run":                  {query: "dry_run=true", status: 400, says: "use validate_only=true"},
		"dryRun of Kubernetes":     {query: "dryRun=All", status: 400, says: "use validate_only=true"},
		"a boolean of Python":      {query: "validate_only=True", status: 200, says: `"pk":0`},
		"cookies of a proxy":       {query: "validate_only=true", cookie: strings.Repeat("a", 8<<10), status: 200, says: `"pk":0`},
		"15 KiB of cookies":        {query: "validate_only=true", cookie: strings.Repeat("a", 15<<10), status: 200, says: `"pk":0`},
		"24 KiB of cookies":        {query: "validate_only=true", cookie: strings.Repeat("a", 24<<10), status: 431, says: "431"},
		"a no-break space as name": {query: "validate_only=true", name: "\u00a0", status: 400, says: `"code":"blank"`},
		"a byte order mark as name, which every engine accepts": {
			query: "validate_only=true", name: "\ufeff", status: 200, says: "\ufeff",
		},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			name := c.name
			if name == "" {
				name = "n"
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
				server.URL+providerdtest.OAuth2Path+"?"+c.query, strings.NewReader(strings.Replace(named, "NAME", name, 1)))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer "+token)
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Cookie", "s="+c.cookie)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			// The connection may be reset after 431, because the rest of the header is not read.
			body, _ := io.ReadAll(response.Body)
			if response.StatusCode != c.status || !strings.Contains(string(body), c.says) {
				t.Errorf("%d %s; want %d %s", response.StatusCode, body, c.status, c.says)
			}
		})
	}
}
