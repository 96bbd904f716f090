//go:build slow

package leaks_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

func (s *search) oauth2Body(name, clientID string) string {
	return s.body(map[string]any{
		"name": name, "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01", "client_id": clientID,
		"client_secret": s.fresh("client_secret of " + name),
	})
}

// directoryBody is oauth2Body for a directory, whose credentials are canaries.
func (s *search) directoryBody(name string) string {
	return s.body(map[string]any{
		"credentials": map[string]any{
			s.fresh("member name in " + name): s.fresh("value in " + name),
			"nested":                          []any{map[string]any{"key": s.fresh("nested value in " + name)}},
		},
		"default_group_email_domain": "example.com", "delegated_subject": "admin@example.com", "name": name,
	})
}

// body encodes members sorted by name, so that the text is canonical and its digest can be computed.
func (s *search) body(members map[string]any) string {
	text := must(json.Marshal(members))
	// With its plain digest, a text could be guessed.
	digest := sha256.Sum256(text)
	s.canary(fmt.Sprint("digest of ", members["name"]), string(digest[:]))
	return string(text)
}

// creates sends secrets in creates with every outcome, each validated first.
func (s *search) creates() {
	run := rand.Text()[:10]
	// The first record has pk 1 and a kind that an application can be linked to.
	for _, kind := range []struct {
		path, first, other string
		// again is the status of the first body without its key.
		again int
	}{
		{providerdtest.OAuth2Path, s.oauth2Body("first "+run, run), s.oauth2Body("other "+run, run+"x"), 409},
		{providerdtest.DirectoryPath, s.directoryBody("first directory " + run), s.directoryBody("other directory " + run), 201},
	} {
		key, validated := []string{"Idempotency-Key", "key-" + run}, kind.path+"?validate_only=true"
		for range 2 {
			s.post(200, validated, s.initial, kind.first, key...)
			s.post(201, kind.path, s.initial, kind.first, key...)
		}
		s.post(422, validated, s.initial, kind.other, key...)
		s.post(422, kind.path, s.initial, kind.other, key...)
		s.post(kind.again, kind.path, s.initial, strings.Replace(kind.first, "{", `{"x":1,`, 1), "Prefer", "handling=lenient")
	}
	for _, at := range []string{providerdtest.OAuth2Path + "?validate_only=true", providerdtest.OAuth2Path} {
		s.post(409, at, s.initial, s.oauth2Body("taken "+run, run))
	}
}

func (s *search) refusals() {
	secret := s.fresh("refused secret")
	q := strconv.Quote(secret)
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
			s.post(status, at, s.initial, body)
		}
	}
	queried := s.fresh("secret in a query")
	for _, query := range []string{"validate_only=", "client_secret=", "validate_only=true;", "validate_only=%zz"} {
		s.post(400, providerdtest.OAuth2Path+"?"+query+queried, s.initial, "{}")
	}
	body := `{"client_secret":` + q + `}`
	s.post(403, providerdtest.DirectoryPath, s.narrow, body)
	s.send(405, http.MethodPut, providerdtest.OAuth2Path, s.initial, body)
	s.post(404, "/nowhere/", s.initial, body)
	s.post(406, providerdtest.OAuth2Path, s.initial, body, "Accept", "text/html")
	s.post(415, providerdtest.OAuth2Path, s.initial, body, "Content-Type", "text/plain")
	s.post(400, providerdtest.OAuth2Path, s.initial, body, "Idempotency-Key", "")
	s.post(400, providerdtest.OAuth2Path, s.initial, body,
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate", "x="+secret)
}

// wrongTokens sends valid tokens in wrong places, and invalid ones in the right place until the rate limit.
func (s *search) wrongTokens() {
	s.post(401, providerdtest.OAuth2Path+"?access_token="+s.initial, "", "{}")
	s.post(400, providerdtest.OAuth2Path+"?access_token="+s.initial, s.initial, "{}")
	s.post(401, providerdtest.OAuth2Path, "", "{}", "Authorization", "Basic "+s.initial)
	s.post(401, providerdtest.OAuth2Path, "", "{}", "Authorization", s.initial)
	mistyped := s.initial[:len(s.initial)-1] + "?"
	s.canary("mistyped token", mistyped)
	s.post(401, providerdtest.OAuth2Path, mistyped, "{}")
	for range 3 {
		s.post(anyStatus, providerdtest.OAuth2Path, s.fresh("wrong token"), "{}")
	}
	s.post(429, providerdtest.OAuth2Path, mistyped, "{}")
}

func (s *search) pages() {
	for _, path := range []string{
		"/healthz", "/readyz", "/openapi.json", "/openapi.yaml", "/problems/unauthorized", "/problems/validation-failed",
		"/problems/client-id-taken", "/problems/internal", "/docs/", "/",
	} {
		s.send(anyStatus, http.MethodGet, path, s.initial, "")
	}
	served, client := s.server.URL, s.client
	s.server.URL, s.client = providerdtest.OpsURL(s.t, s.server), http.DefaultClient
	for _, path := range []string{"goroutine?debug=2", "heap?debug=1", "allocs?debug=1", "block?debug=1", "cmdline"} {
		s.send(anyStatus, http.MethodGet, "/debug/pprof/"+path, "", "")
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		s.send(200, http.MethodGet, path, s.initial, "")
	}
	s.server.URL, s.client = served, client
}

// commands runs every command. Updates change secrets, with flags and with an entry.
func (s *search) commands() {
	for _, line := range []string{
		"--help", "serve --help", "token --help", "token create --help", "provider --help", "key --help", "audit --help",
		"version", "token list", "token create --name x --allow nothing", "token create --name x", "token revoke 2",
		"token list --output json", "provider list", "provider list --output json",
		"provider list --name x --limit 1", "provider show 1", "provider show 1 --output json",
		"provider show 3", "provider show 3 --output json", "provider show 99",
		"provider list --advice", "provider list --advice --output json", "provider list --advice --limit 1",
		"provider export", "provider export --to exported.yaml", "application create s --name n --backchannel 3",
		"application link s --provider 1", "application list", "application list --output json",
		"provider delete 1 3 --yes", "application unlink s --provider 1",
		"application delete s --yes", "provider delete 3 --yes", "provider delete 3", "audit", "audit --output json",
		"key rotate", "key list", "key reseal", "key list --output json",
		"key create --keyset x.json", "key list --keyset x.json", "nonsense", "serve --listen x",
		"backup --help", "backup early.db", "restore --help", "restore early.db --replace",
		"copy --help", "copy --to sqlite:copied.db", "copy --live --to sqlite:copied.db", "copy --live --to sqlite:copied.db",
		"doctor", "doctor --output json", "doctor --tls-key x.json", "migrate",
		"health", "health --tls-cert x.json",
	} {
		s.run(strings.Fields(line)...)
	}
	dir := s.t.TempDir()
	secret, large := filepath.Join(dir, "secret"), filepath.Join(dir, "large")
	for path, text := range map[string]string{
		secret: s.fresh("updated client secret"),
		large:  s.fresh("client secret that is too long") + strings.Repeat("x", 300),
	} {
		check(os.WriteFile(path, []byte(text), 0o600))
	}
	for _, arguments := range [][]string{
		{"update", "1", "client_secret=@" + secret, "--yes"},
		{"update", "1", "client_secret=@" + large, "--yes"},
		{"update", "1", "client_secret=@" + secret},
		{"update", "1", "client_secret=@" + secret, "delegated_subject=x", "--yes"},
		{"update", "1", "client_secret:=@" + secret, "--yes"},
		{"create", "oauth2", "--as", "ci", "name=a", "client_secret=@" + large},
		{
			"create", "oauth2", "--as", "ci", "name=a", "authorization_flow=3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01",
			"client_secret=@" + secret,
		},
	} {
		s.run(append([]string{"provider"}, arguments...)...)
	}
	s.run("provider", "export")
	s.expect("an export", s.stderr, " replaces the client_secret of provider ")
	printed := s.run("audit")
	s.expect("the audit", printed, " provider deleted ")
	s.expect("the audit", printed, " provider updated ")
}

// replaceMasterKey replaces the master key, and uses keyset files that lack it, are truncated or missing.
func (s *search) replaceMasterKey() {
	next, previous := s.keyset+".next", filepath.Join(s.t.TempDir(), "previous.json")
	s.run("key", "create", "--keyset", next, "--add", s.keyset)
	check(os.Rename(s.keyset, previous))
	check(os.Rename(next, s.keyset))
	s.run("key", "rewrap")
	s.run("key", "create", "--keyset", next, "--drop", s.keyset)
	check(os.Rename(next, s.keyset))
	s.run("key", "list", "--keyset", previous)
	s.expect("a command with the former keyset", s.stderr, "it lacks master key")
	content := must(os.ReadFile(previous))
	check(os.WriteFile(previous, content[:len(content)-len(content)/4], 0o600))
	s.run("key", "list", "--keyset", previous)
	s.expect("a command with a truncated keyset", s.stderr, "is not a Tink keyset")
	check(os.Rename(s.keyset, s.keyset+".away"))
	s.send(503, http.MethodGet, "/readyz", "", "")
	s.post(503, providerdtest.OAuth2Path, s.initial, s.oauth2Body("unsealed", "unsealed"))
	s.run("provider", "list")
	check(os.Rename(s.keyset+".away", s.keyset))
}

// spans scans the spans of a session. It waits for the last one, the only one of a create while storage is unavailable.
func (s *search) spans() {
	processtest.WaitUntil(s.t, "the collector has the last span", func() bool {
		return bytes.Contains(slices.Concat(s.collector.Bodies()...), []byte("storage-unavailable"))
	})
	for _, text := range s.collector.Bodies() {
		s.scan("the traces", text)
	}
}

// applies passes secrets to apply in every way: created, unchanged, drifted, refused, and in invalid files.
func (s *search) applies() {
	run := rand.Text()[:10]
	oauth2, directory := s.oauth2Body("applied "+run, "applied-"+run), s.directoryBody("applied directory "+run)
	file := "oauth2: [" + oauth2 + "]\nworkspace_directory: [" + directory + "]\n"
	other := strings.Replace(s.oauth2Body("refused "+run, "applied-"+run), "{", `{"id": "other", `, 1)
	secret := s.fresh("secret in a faulty file")
	for _, input := range []struct{ text, want string }{
		{file, "2 created"},
		{file, "2 unchanged"},
		{strings.Replace(file, oauth2, s.oauth2Body("applied "+run, "other-"+run), 1), "1 drifted"},
		{"oauth2: [" + other + "]", "1 refused"},
		{"oauth2: []\noauth2: " + secret, "occurs twice"},
		{"oauth2: [{name: a, client_secret: *" + secret + "}]", "anchor"},
		{"oauth2: [{name: a, client_secret: !" + secret + " x}]", "tag"},
		{"oauth2: [{name: a, client_secret: '${" + secret + "-'}]", "that is not part of a reference"},
		{"oauth2: [{name: a, client_secret: \"" + secret, "is not valid YAML"},
		{"oauth2: [{name: a, client_secret: [" + secret + "], authorization_flow: " + secret + "}]", "must be a UUID"},
		{"oauth2:\n- " + secret, "must be a mapping"},
		{secret, "must be a mapping"},
	} {
		s.runWithInput(input.text, "apply", "-f", "-", "--server", s.server.URL, "--dry-run", "--output", "json")
		s.runWithInput(input.text, "apply", "-f", "-", "--server", s.server.URL)
		s.expect("apply", s.stderr, input.want)
	}
	s.runWithInput(file, "apply", "-f", "-", "--dry-run")
	s.runWithInput(file, "apply", "-f", "-", "--server", s.server.URL, "--dry-run")
	s.runWithInput(file, "apply", "-f", "-", "--dry-run", "--strict", "--output", "json")
	s.runWithInput(file, "apply", "-f", "-", "--server", s.server.URL, "--output", "json")
	// Plans of changes have new secrets for stored providers.
	changed := "oauth2: [" + s.oauth2Body("applied "+run, "applied-"+run) + "]\n"
	for flags, want := range map[string]string{
		"--dry-run": "1 update", "--dry-run --output json": "1 update", "--dry-run --prune=1000": " delete,",
	} {
		s.runWithInput(changed, append([]string{"apply", "-f", "-", "--as", "initial"}, strings.Fields(flags)...)...)
		s.expect("a plan with "+flags, s.stderr, want)
	}
	s.runWithInput(changed, "apply", "-f", "-", "--as", "initial", "--yes", "--output", "json")
	s.expect("a plan", s.stderr, "1 updated")
}

func (s *search) newToken(name string, operations ...string) string {
	arguments := []string{"token", "create", "--name", name}
	for _, operation := range operations {
		arguments = append(arguments, "--allow", operation)
	}
	text := strings.TrimSpace(s.run(arguments...))
	s.canary(name+" token", text)
	return text
}

func (s *search) learnKeys() {
	driver, source := "sqlite3", filepath.Join(s.dir, "data", "providerd.db")
	if s.databaseURL != "" {
		driver, source = "pgx", s.databaseURL
	}
	for _, key := range must(providerdtest.ClearKeys(s.keyset, driver, source)) {
		s.canary(fmt.Sprintf("%s key %d", key.Kind, key.ID), string(key.Key))
	}
}
