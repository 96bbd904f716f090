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
	"net/http"
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
	server, client := providerdtest.Serve(t, dir), contracttest.Client(t)
	for path, body := range map[string]string{
		providerdtest.OAuth2Path:    `{"name": "Wiki \u20ac \ud83d\ude00 <b>", "client_id": "wiki", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}`,
		providerdtest.DirectoryPath: `{"name": "Staff", "delegated_subject": "admin@example.com", "credentials": {"canary":1.50}, "default_group_email_domain": "example.com"}`,
	} {
		server.ExpectPost(t, client, http.StatusCreated, path, body, "first")
	}
	expectDigests(t, dir, 3)
	providerdtest.RunCommand(t, dir, "provider", "update", "1", "name=Other", "--yes")
	providerdtest.RunCommand(t, dir, "token", "revoke", "1")
	expectDigests(t, dir, 5)
	providerdtest.RunCommand(t, dir, strings.Fields(
		"application create shop --name Shop --provider 1 --backchannel 1 --backchannel 2")...)
	expectDigests(t, dir, 8)
}

// expectDigests expects that the lines of providers and tokens have the digests of their rows.
func expectDigests(t *testing.T, dir string, count int) {
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
		if text := rowText(t, dir, line); digest(key, text) != line.Digest {
			t.Errorf("%s: %d has the digest %s, not that of %s", line.Event, line.Subject, line.Digest, text)
		}
	}
	if count != 0 {
		t.Errorf("%d lines with a digest are missing", count)
	}
}

// TestDigestsInTheManual computes the digests of the examples with the key that is given there.
func TestDigestsInTheManual(t *testing.T) {
	t.Parallel()
	page := providerdtest.ReadFile(t, "cmd/providerd/manual/audit.md")
	found := regexp.MustCompile("key `([0-9a-f]{64})` with\\s+the id\\s+`([0-9]+)`").FindStringSubmatch(page)
	if found == nil {
		t.Fatal("there is no key")
	}
	var key providerdtest.ClearKey
	_, err := fmt.Sscanf(found[1]+" "+found[2], "%x %d", &key.Key, &key.ID)
	processtest.Must(t, err)
	rows := providerdtest.CodeBlocks(page, "json")
	if len(rows) < 3 {
		t.Fatalf("%d examples", len(rows))
	}
	for _, row := range rows[len(rows)-3:] {
		text := strings.ReplaceAll(row, "\n", "")
		if want := digest(key, []byte(text)); !strings.Contains(page, want) {
			t.Errorf("the digest of %s is %s", text, want)
		}
	}
}

// digest returns the version, and the HMAC-SHA-256 (RFC 2104) of version and text, after the prefix of Tink: a byte 1
// and the id of the key.
func digest(key providerdtest.ClearKey, text []byte) string {
	hash := hmac.New(sha256.New, key.Key)
	hash.Write(append([]byte("v1"), text...))
	return "v1:" + base64.StdEncoding.EncodeToString(hash.Sum(binary.BigEndian.AppendUint32([]byte{1}, key.ID)))
}

// rowText returns the columns of a record that are not NULL in JSON, with the secret in plain text and the links.
func rowText(t *testing.T, dir string, of line) []byte {
	t.Helper()
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
	for _, name := range []string{"include_claims_in_id_token", "exclude_users_service_account"} {
		if number, ok := members[name].(int64); ok {
			members[name] = number == 1
		}
	}
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

// rowOf returns the columns of a row that are not NULL.
func rowOf(t *testing.T, dir, query string, key int64) map[string]any {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "data", "providerd.db")+"?mode=ro")
	processtest.Must(t, err)
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
