package storetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/link"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest/processtest"
)

// CreateSQLite opens a store over the SQLite database at path, and creates the database if there is none. The keyset
// file is at keyset, or is keyset.json next to the database if that is "". It returns the errors of sqlite.Create and
// store.Create.
func CreateSQLite(ctx context.Context, path, keyset string) (*store.Store, error) {
	database, err := sqlite.Create(ctx, path, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return store.Create(ctx, database, keysetPath(database, keyset))
}

// Create is CreateSQLite with a keyset next to the database. The store is closed when the test ends.
func Create(t testing.TB, path string) *store.Store {
	t.Helper()
	opened, err := CreateSQLite(t.Context(), path, "")
	return processtest.Closing(t, opened, err)
}

// Add creates a provider whose client_id is its name.
func Add(ctx context.Context, opened *store.Store, name string) error {
	_, _, err := opened.Providers.CreateOAuth2(ctx, store.CreateRequest{Name: name}, FullOAuth2(name))
	return err
}

// OpenSQLite is CreateSQLite for an existing database. It returns the errors of sqlite.Open and store.Open.
func OpenSQLite(ctx context.Context, path, keyset string) (*store.Store, error) {
	database, err := sqlite.Open(ctx, path, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, database, keysetPath(database, keyset))
}

func keysetPath(database *sqlite.Database, path string) string {
	return cmp.Or(path, filepath.Join(database.Dir(), "keyset.json"))
}

// Execute runs statements in the SQLite database at path, as another program would.
func Execute(t testing.TB, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	processtest.Must(t, err)
	_, err = db.ExecContext(t.Context(), statements)
	processtest.Must(t, err, db.Close())
}

// CreatePostgres opens a store over the PostgreSQL database at a URL, as a replica does. It creates the keyset file if
// there is none. It returns the errors of postgres.Create and store.Create.
func CreatePostgres(ctx context.Context, url, keyset string) (*store.Store, error) {
	parsed, err := link.ParseURL(url)
	if err != nil {
		return nil, err
	}
	if _, err := seal.ReadOrCreateMasterKeys(keyset); err != nil {
		return nil, err
	}
	database, err := postgres.Create(ctx, parsed, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return store.Create(ctx, database, keyset)
}

// FillSQLite creates a SQLite database at path, with a keyset next to it and count providers, faster than creates
// could. Provider N has the name "old N" and the secret "secret N". Every tenth is a directory instead, and every
// second has an idempotency key.
func FillSQLite(t testing.TB, path string, count int) {
	t.Helper()
	db := processtest.Try(sqlite.Create(t.Context(), path, slog.New(slog.DiscardHandler))).Must(t)
	opened := processtest.Try(store.Create(t.Context(), db, keysetPath(db, ""))).Must(t)
	master, err := seal.ReadMasterKeys(keysetPath(db, ""))
	var keyset struct {
		Version, DatabaseID []byte
		seal.Wrapped        `gorm:"embedded"`
	}
	processtest.Must(t, err, db.Reader().WithContext(t.Context()).Table("keyset").Take(&keyset).Error)
	keys := processtest.Try(keyset.Open(master, keyset.DatabaseID)).Must(t)
	const maxBatch = 256
	for last := 0; last < count; {
		// The columns of both kinds come first, then those of one.
		rows := database.Insertion{Table: "providers", KeysetVersion: keyset.Version, Columns: strings.Fields(`uid kind name
			created_at created_by request_id remote_address idempotency_key secret generated property_mappings
			authorization_flow client_type client_id access_code_validity access_token_validity refresh_token_validity
			include_claims_in_id_token signing_key redirect_uris sub_mode issuer_mode jwks_sources
			property_mappings_group delegated_subject scopes exclude_users_service_account user_delete_action
			group_delete_action default_group_email_domain`)}
		for ; len(rows.Rows) < maxBatch && last < count; last++ {
			rows.Rows = append(rows.Rows, filledRow(t, keys, last+1))
		}
		processtest.Try(db.Insert(t.Context(), rows)).Must(t)
	}
	processtest.Must(t, opened.Close())
}

func filledRow(t testing.TB, keys *seal.Keys, pk int) []any {
	kind, name, secret := "oauth2", "old", fmt.Sprint("secret ", pk)
	if pk%10 == 0 {
		kind, name, secret = "workspace_directory", "directory", `{"key":"example"}`
	}
	uid := uuid.Must(uuid.NewV7())
	sealed := processtest.Try(keys.Seal(seal.NewSecret(secret), seal.Place{Row: uid, Value: "providers.secret", Kind: kind})).Must(t)
	var key any
	if pk%2 == 0 {
		key = rand.Text()
	}
	row := []any{
		uid, kind, fmt.Sprint(name, " ", pk), time.Now().UTC(), "ci", rand.Text(), "192.0.2.1", key, sealed, int64(0),
		`["` + uuid.NewString() + `","` + uuid.NewString() + `"]`,
	}
	if kind == "workspace_directory" {
		row = append(row, make([]any, 12)...)
		return append(row, "[]", "admin@example.com", "", false, "do_nothing", "suspend", "example.com")
	}
	// In capitals, one in 30 million would contain SECRET, for which there is advice.
	clientID := strings.ToLower(rand.Text() + rand.Text()[:14])
	row = append(row, uuid.New(), "confidential", clientID, "minutes=1", "hours=1", "days=30", true, uuid.New(),
		"https://example.com/callback\nhttps://www.example.com/callback", "hashed_user_id", "per_provider", "[]")
	return append(row, make([]any, 7)...)
}
