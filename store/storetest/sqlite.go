package storetest

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"

	"example.com/providerd/store"
	"example.com/providerd/store/sqlite"
)

// CreateSQLite opens a store over the SQLite database at path, or makes it. Its keyset is in the file at keysetPath,
// which is keyset.json beside it where that is "". It returns the errors of sqlite.Create and store.Create.
func CreateSQLite(ctx context.Context, path, keysetPath string) (*store.Store, error) {
	database, err := sqlite.Create(ctx, path, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return store.Create(ctx, database, keysetOf(database, keysetPath))
}

// OpenSQLite is CreateSQLite for a database that is there. It returns the errors of sqlite.Open and store.Open.
func OpenSQLite(ctx context.Context, path, keysetPath string) (*store.Store, error) {
	database, err := sqlite.Open(ctx, path, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, database, keysetOf(database, keysetPath))
}

func keysetOf(database *sqlite.Database, path string) string {
	return cmp.Or(path, filepath.Join(database.Dir(), "keyset.json"))
}
