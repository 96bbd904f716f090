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
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
)

// TestRootsOfLines computes the heads from the lines, and leaves from the rows, as anyone could who has read the manual.
func TestRootsOfLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, client := providerdtest.Serve(t, dir), contracttest.Client(t)
	for path, body := range map[string]string{
		"oauth2":              `{"name": "Wiki \u20ac \ud83d\ude00 <b>", "client_id": "wiki", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}`,
		"workspace_directory": `{"name": "Staff", "delegated_subject": "admin@example.com", "credentials": {"canary":1.50}, "default_group_email_domain": "example.com"}`,
	} {
		if status, text, err := server.PostWithKey(client, "/api/v3/providers/"+path+"/", body, "first"); status != 201 {
			t.Fatal(status, text, err)
		}
	}
	lines := linesOf(t, providerdtest.RunCommand(t, dir, "audit", "--output", "jsonl"))
	for _, line := range lines {
		if line.Event != "provider created" {
			continue
		}
		if text := canonicalRow(t, dir, line); !bytes.Equal(leafHash(text), line.Leaf) {
			t.Errorf("provider %d has leaf %x, not that of %s", line.ID, line.Leaf, text)
		}
	}
	providerdtest.RunCommand(t, dir, "provider", "update", "1", "--name", "Other", "--yes")
	providerdtest.RunCommand(t, dir, "provider", "update", "1", "--name", "Third", "--yes")
	server.Create(t, client)
	providerdtest.RunCommand(t, dir, "provider", "delete", "2", "--yes")
	var creates, changes [][]byte
	for _, line := range linesOf(t, providerdtest.RunCommand(t, dir, "audit", "--output", "jsonl")) {
		switch line.Event {
		case "provider created":
			creates = append(creates, line.Leaf)
		case "provider updated", "provider deleted":
			changes = append(changes, leafHash(canonical(t, map[string]any{
				"id": json.Number(strings.Split(line.Cursor, ".")[1]), "at": line.At, "event": line.Event, "pk": line.ID,
				"user": line.User, "fields": append([]string{}, line.Fields...), "leaf": line.Leaf,
			})))
		}
	}
	heads := providerdtest.RunCommand(t, dir, "audit", "head")
	for _, leaves := range [][][]byte{creates, changes} {
		want := fmt.Sprintf("\n%d\n%s\n", len(leaves), base64.StdEncoding.EncodeToString(root(leaves)))
		if len(leaves) != 3 || !strings.Contains(heads, want) {
			t.Errorf("heads are %s, want %s", heads, want)
		}
	}
}

// TestLeavesInTheManual checks the examples of canonical rows.
func TestLeavesInTheManual(t *testing.T) {
	t.Parallel()
	page := providerdtest.ReadFile(t, "cmd/providerd/manual/audit.md")
	rows := providerdtest.CodeBlocks(page, "json")
	if len(rows) < 2 {
		t.Fatalf("%d examples", len(rows))
	}
	for _, row := range rows[len(rows)-2:] {
		text := strings.ReplaceAll(row, "\n", "")
		if hash := base64.StdEncoding.EncodeToString(leafHash([]byte(text))); !strings.Contains(page, hash) {
			t.Errorf("the leaf of %s is %s", text, hash)
		}
	}
}

// leafHash and root follow RFC 6962, section 2.1.
func leafHash(text []byte) []byte {
	hash := sha256.Sum256(append([]byte{0}, text...))
	return hash[:]
}

func root(leaves [][]byte) []byte {
	if len(leaves) == 1 {
		return leaves[0]
	}
	split := 1
	for 2*split < len(leaves) {
		split *= 2
	}
	hash := sha256.Sum256(slices.Concat([]byte{1}, root(leaves[:split]), root(leaves[split:])))
	return hash[:]
}

// canonical returns JSON with sorted members, as RFC 8785 requires for what the tests have.
func canonical(t *testing.T, members map[string]any) []byte {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(members); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(text.Bytes())
}

// canonicalRow returns the columns of a record in JSON, with the MAC of its secret.
func canonicalRow(t *testing.T, dir string, of line) []byte {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "data", "providerd.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	members := row(t, db, of.ID)
	for _, name := range []string{"include_claims_in_id_token", "exclude_users_service_account"} {
		if number, ok := members[name].(int64); ok {
			members[name] = number == 1
		}
	}
	members["created_at"] = of.At
	secret := `{"canary":1.50}`
	if of.Kind == "oauth2" {
		secret = show(t, dir, of.ID, "client_secret")
	}
	members["secret"] = mac(t, dir, secret)
	return canonical(t, members)
}

// row returns the columns of a provider that are not NULL.
func row(t *testing.T, db *sql.DB, pk int64) map[string]any {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT * FROM providers WHERE pk = ?", pk)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil || !rows.Next() {
		t.Fatal(err, rows.Err())
	}
	values, targets := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		targets[i] = &values[i]
	}
	if err := rows.Scan(targets...); err != nil {
		t.Fatal(err)
	}
	members := map[string]any{}
	for i, name := range names {
		if values[i] != nil {
			members[name] = values[i]
		}
	}
	return members
}

// show returns a member of a provider.
func show(t *testing.T, dir string, pk int64, name string) (value string) {
	t.Helper()
	var members map[string]any
	text := providerdtest.RunCommand(t, dir, "provider", "show", fmt.Sprint(pk), "--reveal", "--output", "json")
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		t.Fatal(err)
	}
	return members[name].(string)
}

// mac returns the HMAC-SHA-256 of a text, after the prefix of Tink: version 1 and the id of the key.
func mac(t *testing.T, dir, text string) []byte {
	t.Helper()
	data := filepath.Join(dir, "data")
	keys, err := providerdtest.ClearKeys(filepath.Join(data, "keyset.json"), "sqlite3", filepath.Join(data, "providerd.db"))
	if err != nil {
		t.Fatal(err)
	}
	key := keys[slices.IndexFunc(keys, func(key providerdtest.ClearKey) bool { return key.Kind == "digest" })]
	hash := hmac.New(sha256.New, key.Key)
	hash.Write([]byte(text))
	return hash.Sum(binary.BigEndian.AppendUint32([]byte{1}, key.ID))
}
