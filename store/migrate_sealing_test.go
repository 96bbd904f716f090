package store_test

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/pressly/goose/v3"

	"example.com/providerd/store"
)

// makeUnsealed makes a database as version 2 of the schema left it, with secrets in clear text.
func makeUnsealed(t *testing.T, path string, providers int) {
	t.Helper()
	db, err := sql.Open("sqlite3", path+"?_journal_mode=WAL")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	migrations, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS("migrations/sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.UpTo(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	transaction, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range providers {
		digest := sha256.Sum256([]byte(fmt.Sprint(i)))
		kind, settings := "oauth2", `INSERT INTO oauth2_providers VALUES (?, NULL, '`+uuid.Nil.String()+
			`', '[]', '', hex(randomblob(20)), ?, '', '', '', TRUE, NULL, '', '', '', '[]')`
		secret := any(fmt.Sprintf("%s-%d", canary, i))
		if i%2 == 1 {
			kind, settings = "workspace_directory",
				`INSERT INTO workspace_directory_providers VALUES (?, '[]', '[]', '', ?, '', FALSE, NULL, '', '', '')`
			secret = fmt.Appendf(nil, `{"key":%q}`, secret)
		}
		_, err := transaction.ExecContext(t.Context(), `INSERT INTO providers
			VALUES (?, ?, 'old', '2026-01-01 00:00:00+00:00', 'caller', 'r', ?, ?)`, i+1, kind, fmt.Sprint(i), digest[:])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := transaction.ExecContext(t.Context(), settings, i+1, secret); err != nil {
			t.Fatal(err)
		}
	}
	if err := transaction.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestUnsealedDatabaseIsSealedInPlace(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "test.db")
	const providers = 1000
	makeUnsealed(t, path, providers)
	if _, err := store.Open(t.Context(), "sqlite:"+path, ""); !errors.Is(err, store.ErrOlderDatabase) {
		t.Errorf("Open: error is %v, want ErrOlderDatabase", err)
	}
	database := create(t, path)
	count := 0
	for record, err := range database.Providers(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%s-%d", canary, count)
		if count%2 == 1 {
			want = `{"key":"` + want + `"}`
		}
		if got := secret(record); got != want {
			t.Errorf("secret %d is %q, want %q", count, got, want)
		}
		count++
	}
	if count != providers {
		t.Errorf("%d providers are left of %d", count, providers)
	}
	key := "4"
	for body, want := range map[string]error{"4": nil, "5": store.ErrKeyReused} {
		digest := sha256.Sum256([]byte(body))
		_, replayed, err := database.CreateOAuth2Provider(t.Context(),
			store.Creation{Name: "x", CreatedBy: "caller", IdempotencyKey: &key, BodyDigest: digest[:]},
			store.OAuth2Settings{PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{}})
		if !errors.Is(err, want) || replayed != (want == nil) {
			t.Errorf("retry with body %s: replayed is %v, %v", body, replayed, err)
		}
	}
	digest := sha256.Sum256([]byte("4"))
	files, err := filepath.Glob(folder + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(content, []byte(canary)) || bytes.Contains(content, digest[:]) {
			t.Errorf("a secret, or the digest of a body, is in %s", file)
		}
	}
}
