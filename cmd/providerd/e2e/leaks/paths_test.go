//go:build slow

package leaks_test

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// oauth2Body returns a create with a canary as its secret. Its members are sorted by name, so that the text is
// canonical and its digest can be computed.
func (s *search) oauth2Body(name, clientID string) string {
	text, err := json.Marshal(map[string]any{
		"name": name, "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01", "client_id": clientID,
		"client_secret": s.fresh("client_secret of " + name),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	body := string(text)
	s.digestCanary("digest of "+name, body)
	return body
}

func (s *search) directoryBody(name string) string {
	text, err := json.Marshal(map[string]any{
		"credentials": map[string]any{
			s.fresh("member name in " + name): s.fresh("value in " + name),
			"nested":                          []any{map[string]any{"key": s.fresh("nested value in " + name)}},
		},
		"default_group_email_domain": "example.com", "delegated_subject": "admin@example.com", "name": name,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	body := string(text)
	s.digestCanary("digest of "+name, body)
	return body
}

// creates sends secrets in creates with every outcome: created, replayed, refused for the key, and refused for the
// client_id. Before each, it validates the create.
func (s *search) creates() {
	run := rand.Text()[:10]
	// The first record has pk 1 and a kind that an application can be linked to.
	for _, path := range []string{providerdtest.OAuth2Path, providerdtest.DirectoryPath} {
		first := s.directoryBody("first directory " + run)
		if path == providerdtest.OAuth2Path {
			first = s.oauth2Body("first "+run, run)
		}
		key, validated := []string{"Idempotency-Key", "key-" + run}, path+"?validate_only=true"
		for range 2 {
			s.want(s.send(http.MethodPost, validated, s.initial, first, key...), http.StatusOK)
			s.want(s.send(http.MethodPost, path, s.initial, first, key...), http.StatusCreated)
		}
		other := s.oauth2Body("other "+run, run+"x")
		if path == providerdtest.DirectoryPath {
			other = s.directoryBody("other directory " + run)
		}
		for _, at := range []string{validated, path} {
			s.want(s.send(http.MethodPost, at, s.initial, other, key...), http.StatusUnprocessableEntity)
		}
		s.want(s.send(http.MethodPost, path, s.initial, strings.Replace(first, "{", `{"x":1,`, 1), "Prefer",
			"handling=lenient"), map[string]int{providerdtest.OAuth2Path: http.StatusConflict, providerdtest.DirectoryPath: http.StatusCreated}[path])
	}
	for _, at := range []string{providerdtest.OAuth2Path + "?validate_only=true", providerdtest.OAuth2Path} {
		s.want(s.send(http.MethodPost, at, s.initial, s.oauth2Body("taken "+run, run)), http.StatusConflict)
	}
}

// refusals sends secrets that are refused for every reason.
func (s *search) refusals() {
	secret := s.fresh("refused secret")
	quoted, err := json.Marshal(secret)
	if err != nil {
		s.t.Fatal(err)
	}
	q := string(quoted)
	for body, status := range map[string]int{
		`{"name":"x","authorization_flow":` + q + `,"client_secret":` + q + `}`: 400,
		`{"client_secret":{"a":` + q + `}}`:                                     400,
		`{"client_secret":[` + q + `],"credentials":` + q + `}`:                 400,
		`{"client_secret":"` + strings.Repeat("x", 256) + secret[9:] + `"}`:     400,
		`{"client_secret":` + q + `,"client_secret":` + q + `}`:                 400,
		`{"client_secret":` + q:                                                 400,
		`{"client_secret":` + q + `} ` + q:                                      400,
		`[` + q + `]`:                                                           400,
		q:                                                                       400,
		"\xef\xbb\xbf{" + q + ":1}":                                             400,
		`{"client_type":` + q + `,"sub_mode":` + q + `,"redirect_uris":` + q + `,"signing_key":` + q + `}`: 400,
		`{"client_secret":` + q + `,"name":"` + strings.Repeat("x", 1<<20) + `"}`:                          413,
	} {
		for _, at := range []string{providerdtest.OAuth2Path + "?validate_only=true", providerdtest.OAuth2Path} {
			s.want(s.send(http.MethodPost, at, s.initial, body), status)
		}
	}
	for _, query := range []string{"validate_only=", "client_secret=", "validate_only=true;", "validate_only=%zz"} {
		s.want(s.send(http.MethodPost, providerdtest.OAuth2Path+"?"+query+secret, s.initial, "{}"), http.StatusBadRequest)
	}
	body := `{"client_secret":` + q + `}`
	s.want(s.send(http.MethodPost, providerdtest.DirectoryPath, s.narrow, body), http.StatusForbidden)
	s.want(s.send(http.MethodPut, providerdtest.OAuth2Path, s.initial, body), http.StatusMethodNotAllowed)
	s.want(s.send(http.MethodPost, "/nowhere/", s.initial, body), http.StatusNotFound)
	s.want(s.send(http.MethodPost, providerdtest.OAuth2Path, s.initial, body, "Accept", "text/html"), http.StatusNotAcceptable)
	s.want(s.send(http.MethodPost, providerdtest.OAuth2Path, s.initial, body, "Content-Type", "text/plain"),
		http.StatusUnsupportedMediaType)
	s.want(s.send(http.MethodPost, providerdtest.OAuth2Path, s.initial, body, "Idempotency-Key", ""), http.StatusBadRequest)
	s.want(s.send(http.MethodPost, providerdtest.OAuth2Path, s.initial, body, "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate", "x="+secret),
		http.StatusBadRequest)
}

// wrongTokens sends valid tokens in wrong places and invalid tokens in the right place, until the address is rate
// limited.
func (s *search) wrongTokens() {
	s.want(s.send(http.MethodPost, providerdtest.OAuth2Path+"?access_token="+s.initial, "", "{}"), http.StatusUnauthorized)
	s.want(s.send(http.MethodPost, providerdtest.OAuth2Path+"?access_token="+s.initial, s.initial, "{}"), http.StatusBadRequest)
	s.want(s.send(http.MethodPost, providerdtest.OAuth2Path, "", "{}", "Authorization", "Basic "+s.initial), http.StatusUnauthorized)
	s.want(s.send(http.MethodPost, providerdtest.OAuth2Path, "", "{}", "Authorization", s.initial), http.StatusUnauthorized)
	mistyped := s.initial[:len(s.initial)-1] + "?"
	s.canary("mistyped token", mistyped)
	s.want(s.send(http.MethodPost, providerdtest.OAuth2Path, mistyped, "{}"), http.StatusUnauthorized)
	for range 3 {
		s.send(http.MethodPost, providerdtest.OAuth2Path, s.fresh("wrong token"), "{}")
	}
	s.want(s.send(http.MethodPost, providerdtest.OAuth2Path, mistyped, "{}"), http.StatusTooManyRequests)
}

// pages fetches everything that is served without a token, and the ops listener.
func (s *search) pages() {
	for _, path := range []string{
		"/healthz", "/readyz", "/openapi.json", "/openapi.yaml", "/problems/unauthorized", "/problems/validation-failed",
		"/problems/client-id-taken", "/problems/internal", "/docs/", "/",
	} {
		s.send(http.MethodGet, path, s.initial, "")
	}
	served, client := s.server.URL, s.client
	s.server.URL, s.client = providerdtest.OpsURL(s.t, s.server), http.DefaultClient
	for _, path := range []string{"goroutine?debug=2", "heap?debug=1", "allocs?debug=1", "block?debug=1", "cmdline"} {
		s.send(http.MethodGet, "/debug/pprof/"+path, "", "")
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		s.want(s.send(http.MethodGet, path, s.initial, ""), http.StatusOK)
	}
	s.server.URL, s.client = served, client
}

// commands runs every command.
func (s *search) commands() {
	for _, line := range []string{
		"--help", "serve --help", "token --help", "token create --help", "provider --help", "key --help", "audit --help",
		"version", "token list", "token create --name x --allow nothing", "token create --name x", "token revoke 2",
		"token list --output json", "token list --output yaml", "provider list", "provider list --output json",
		"provider list --output yaml", "provider list --name x --limit 1", "provider show 1", "provider show 1 --output json",
		"provider show 3", "provider show 3 --output json", "provider show 3 --output yaml", "provider show 99",
		"provider advise", "provider advise --output json", "provider advise --output yaml", "provider advise 1",
		"provider advise 99", "provider export", "provider export --output exported.yaml", "application create --slug s --name n --backchannel 3",
		"application link s --provider 1", "application list", "application list --output json",
		"application list --output yaml", "provider delete 1 3 --yes", "application unlink s --provider 1",
		"application delete s --yes", "provider delete 3 --yes", "provider delete 3", "audit", "audit --output json",
		"audit --output yaml", "key rotate", "key promote", "key reseal", "key retire",
		"key create --keyset x.json", "nonsense", "serve --listen x",
		"backup --help", "backup early.db", "restore --help", "restore early.db --replace",
		"copy --help", "copy --to sqlite:copied.db", "copy --to sqlite:copied.db",
		"doctor", "doctor --output json", "doctor --tls-key x.json", "migrate --status", "migrate --to 1",
		"health", "health --tls-cert x.json",
	} {
		s.run(strings.Fields(line)...)
	}
	s.update()
	if s.run("provider", "export"); !strings.Contains(s.stderr, " replaces the client_secret of provider ") {
		s.missed = append(s.missed, "export lists no reference: "+s.stderr)
	}
	printed := s.run("audit")
	for _, event := range []string{" provider deleted ", " provider updated "} {
		if !strings.Contains(printed, event) {
			s.missed = append(s.missed, "the audit has no "+event+": "+printed)
		}
	}
	s.learnKeys()
}

// update changes secrets, with flags and with an entry.
func (s *search) update() {
	dir := s.t.TempDir()
	secret, entry := filepath.Join(dir, "secret"), filepath.Join(dir, "entry.yaml")
	for path, text := range map[string]string{
		secret: s.fresh("updated client secret"),
		entry: `oauth2: [{name: a, authorization_flow: 3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01, client_secret: "` +
			s.fresh("client secret of an entry") + `"}]`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, flags := range [][]string{
		{"--client-secret-file", secret, "--yes"},
		{"--from", entry, "--yes"},
		{"--client-secret-file", secret},
		{"--client-secret-file", secret, "--delegated-subject", "x", "--yes"},
	} {
		s.run(append([]string{"provider", "update", "1"}, flags...)...)
	}
}

// withoutKeyset sends secrets while the keyset is missing.
func (s *search) withoutKeyset() {
	path := s.keyset
	if err := os.Rename(path, path+".away"); err != nil {
		s.t.Fatal(err)
	}
	s.want(s.send(http.MethodPost, providerdtest.OAuth2Path, s.initial, s.oauth2Body("unsealed", "unsealed")),
		http.StatusServiceUnavailable)
	s.send(http.MethodGet, "/readyz", "", "")
	s.run("provider", "list")
	if err := os.Rename(path+".away", path); err != nil {
		s.t.Fatal(err)
	}
}

// tracing returns an environment in which the server exports spans quickly, with a key for the collector.
func (s *search) tracing() []string {
	return []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + s.collector.URL, "OTEL_BSP_SCHEDULE_DELAY=10",
		"OTEL_EXPORTER_OTLP_HEADERS=api-key=" + s.fresh("key of the collector"),
	}
}

// spans scans the spans of a session. It waits for the last one, which is the only one with status 503.
func (s *search) spans() {
	processtest.WaitUntil(s.t, "the collector has the last span", func() bool {
		for _, span := range s.collector.Spans(s.t) {
			if span.Attributes["http.response.status_code"] == "503" {
				return true
			}
		}
		return false
	})
	for _, text := range s.collector.Bodies() {
		s.scan("the traces", text)
	}
}
