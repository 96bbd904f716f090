package storetest

import (
	"cmp"
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres"
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
	parsed, err := postgres.ParseURL(url)
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
