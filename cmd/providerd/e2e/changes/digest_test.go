//go:build slow

package changes_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestDigestsOfLines computes digests from rows, as anyone could who has the key and has read the manual.
func TestDigestsOfLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, client, defaults := providerdtest.Serve(t, dir), contracttest.Client(t), map[string]any{}
	for _, create := range [][2]string{
		{providerdtest.OAuth2Path, `{"name": "Wiki \u20ac \ud83d\ude00 <b>", "client_id": "wiki", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}`},
		{providerdtest.DirectoryPath, `{"name": "Staff", "delegated_subject": "admin@example.com", "credentials": {"canary":1.50}, "default_group_email_domain": "example.com"}`},
	} {
		path, body := create[0], create[1]
		maps.Copy(defaults, defaultsOf(t, body, server.ExpectPost(t, client, http.StatusCreated, path, body, "first")))
	}
	expectDigests(t, dir, 3, defaults)
	providerdtest.RunCommand(t, dir, "provider", "update", "1", "name=Other", "--yes")
	providerdtest.RunCommand(t, dir, "token", "revoke", "1")
	expectDigests(t, dir, 5, defaults)
	providerdtest.RunCommand(t, dir, strings.Fields(
		"application create shop --name Shop --provider 1 --backchannel 1 --backchannel 2")...)
	expectDigests(t, dir, 8, defaults)
}

func expectDigests(t *testing.T, dir string, count int, defaults map[string]any) {
	t.Helper()
	data := filepath.Join(dir, "data")
	keys, err := providerdtest.ClearKeys(filepath.Join(data, "keyset.json"), "sqlite3", filepath.Join(data, "providerd.db"))
	processtest.Must(t, err)
	key := keys[slices.IndexFunc(keys, func(key providerdtest.ClearKey) bool { return key.Kind == "digest" })]
	for _, line := range linesOf(t, providerdtest.RunCommand(t, dir, "audit", "list", "--output", "jsonl")) {
		if line.Kind == "" && !strings.HasPrefix(line.Event, "token ") {
			continue
		}
		count--
		if text := rowText(t, dir, line, defaults); digest(key, text) != line.Digest {
			t.Errorf("%s: %d has the digest %s, not that of %s", line.Event, line.Subject, line.Digest, text)
		}
	}
	processtest.Equal(t, count, 0, "missing lines with a digest")
}

// TestNullIsTheDefault sets every column that can be NULL and has a default to NULL, as in a row that is older than the column. Nothing
// differs from the lines, the records are shown as before, and a retry is one.
func TestNullIsTheDefault(t *testing.T) {
	t.Parallel()
	dir, client := t.TempDir(), contracttest.Client(t)
	bodies := map[string]string{
		providerdtest.OAuth2Path:    `{"name": "Wiki", "client_id": "wiki", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}`,
		providerdtest.DirectoryPath: `{"name": "Staff", "delegated_subject": "admin@example.com", "credentials": {}, "default_group_email_domain": "example.com"}`,
	}
	first := map[string]string{}
	server := providerdtest.Serve(t, dir)
	for path, body := range bodies {
		first[path] = server.ExpectPost(t, client, http.StatusCreated, path, body, "first")
	}
	server.Stop(t)
	run := func(words ...string) string { return providerdtest.RunCommand(t, dir, words...) }
	lines, shown := run("audit", "list", "--output", "jsonl"), run("provider", "list", "--reveal", "--output", "json")
	processtest.Must(t, os.WriteFile(filepath.Join(dir, "lines"), []byte(lines), 0o600))
	db, err := sql.Open("sqlite3", filepath.Join(dir, "data", "providerd.db"))
	processtest.Must(t, err)
	var assignments string
	processtest.Must(t, db.QueryRowContext(t.Context(), `SELECT group_concat(name || ' = NULL') FROM pragma_table_info('providers')
		WHERE NOT "notnull" AND name NOT IN ('idempotency_key', 'client_id', 'authorization_flow', 'delegated_subject',
		'default_group_email_domain')`).Scan(&assignments))
	_, err = db.ExecContext(t.Context(), "PRAGMA ignore_check_constraints = on; UPDATE providers SET "+assignments)
	processtest.Must(t, err, db.Close())
	run("audit", "verify", "lines")
	processtest.Equal(t, run("provider", "list", "--reveal", "--output", "json"), shown, "records")
	server = providerdtest.Serve(t, dir)
	for path, body := range bodies {
		processtest.Equal(t, server.ExpectPost(t, client, http.StatusCreated, path, body, "first"), first[path], "retry")
	}
}

func TestDigestsInTheManual(t *testing.T) {
	t.Parallel()
	page := providerdtest.ReadFile(t, "cmd/providerd/manual/audit.md")
	found := regexp.MustCompile("key `([0-9a-f]{64})` with\\s+the id\\s+`([0-9]+)`").FindStringSubmatch(page)
	processtest.Require(t, found != nil, "the file has no key")
	var key providerdtest.ClearKey
	processtest.Try(fmt.Sscanf(found[1]+" "+found[2], "%x %d", &key.Key, &key.ID)).Must(t)
	rows := providerdtest.CodeBlocks(page, "json")
	processtest.Require(t, len(rows) >= 3, "%d examples", len(rows))
	for _, row := range rows[len(rows)-3:] {
		processtest.Contains(t, page, digest(key, []byte(strings.ReplaceAll(row, "\n", ""))))
	}
}

// digest returns the version, and its HMAC-SHA-256 (RFC 2104) with text after Tink's prefix: byte 1 and the key's id.
func digest(key providerdtest.ClearKey, text []byte) string {
	hash := hmac.New(sha256.New, key.Key)
	hash.Write(append([]byte("v1"), text...))
	return "v1:" + base64.StdEncoding.EncodeToString(hash.Sum(binary.BigEndian.AppendUint32([]byte{1}, key.ID)))
}

// defaultsOf returns the fields that a response has and its request has not, in the form of columns.
func defaultsOf(t *testing.T, request, response string) map[string]any {
	var sent, stored map[string]any
	processtest.Must(t, json.Unmarshal([]byte(request), &sent), json.Unmarshal([]byte(response), &stored))
	for name, value := range stored {
		if _, isList := value.([]any); isList {
			stored[name] = "[]"
		}
	}
	maps.DeleteFunc(stored, func(name string, _ any) bool { return sent[name] != nil })
	return stored
}

// rowText returns the columns of a record that are neither NULL nor the default in JSON, with the secret in plain text and
// the links.
func rowText(t *testing.T, dir string, of line, defaults map[string]any) []byte {
	if of.Kind == "" {
		members := rowOf(t, dir, "SELECT * FROM tokens WHERE id = ?", of.Subject)
		members["operations"] = json.RawMessage(members["operations"].(string))
		for _, name := range []string{"created_at", "expires_at", "revoked_at"} {
			micros, isSet := members[name].(int64)
			if members[name] = nil; isSet {
				members[name] = time.UnixMicro(micros).UTC()
			}
		}
		return jsonOf(t, members)
	}
	members := rowOf(t, dir, "SELECT *, (SELECT slug FROM applications WHERE provider_pk = pk) AS application, (SELECT slug "+
		"FROM applications JOIN backchannels ON id = application_id WHERE backchannels.provider_pk = pk) AS backchannel "+
		"FROM providers WHERE pk = ?", of.Subject)
	for name, byDefault := range defaults {
		number, isNumber := members[name].(int64)
		if _, isBoolean := byDefault.(bool); isBoolean && isNumber {
			members[name] = number == 1
		}
	}
	maps.DeleteFunc(members, func(name string, value any) bool { return value == defaults[name] })
	members["secret"] = `{"canary":1.50}`
	if of.Kind == "oauth2" {
		var shown struct {
			Secret string `json:"client_secret"`
		}
		output := providerdtest.RunCommand(t, dir, "provider", "show", fmt.Sprint(of.Subject), "--reveal", "--output", "json")
		processtest.Must(t, json.Unmarshal([]byte(output), &shown))
		members["secret"] = shown.Secret
	}
	return jsonOf(t, members)
}

func rowOf(t *testing.T, dir, query string, key int64) map[string]any {
	t.Helper()
	db := processtest.Try(sql.Open("sqlite3", "file:"+filepath.Join(dir, "data", "providerd.db")+"?mode=ro")).Must(t)
	defer func() { _ = db.Close() }()
	rows, err := db.QueryContext(t.Context(), query, key)
	processtest.Must(t, err)
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil || !rows.Next() {
		t.Fatal(err, rows.Err())
	}
	values, targets := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		targets[i] = &values[i]
	}
	processtest.Must(t, rows.Scan(targets...))
	members := map[string]any{}
	for i, name := range names {
		if values[i] != nil {
			members[name] = values[i]
		}
	}
	return members
}

func jsonOf(t *testing.T, members map[string]any) []byte {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	processtest.Must(t, encoder.Encode(members))
	return bytes.TrimSpace(text.Bytes())
}
