package providerdtest

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
)

// Record is a provider, from a response or from the database.
type Record struct {
	Name string
	PK   int32
	// Secret is the client secret or the credentials.
	Secret string
}

// openData opens the database of a server in dir.
func openData(
	t *testing.T, dir string, open func(ctx context.Context, path, keysetPath string) (*store.Store, error),
) *store.Store {
	t.Helper()
	database, err := open(t.Context(), filepath.Join(dir, "data", "providerd.db"), "")
	if err != nil {
		t.Fatal(err)
	}
	return database
}

// Stored returns the providers in the database of a server in dir.
func Stored(t *testing.T, dir string) []Record {
	t.Helper()
	return readAll(t, openData(t, dir, storetest.OpenSQLite))
}

// readAll returns the providers of a database, ordered by pk, and closes it.
func readAll(t *testing.T, database *store.Store) (found []Record) {
	t.Helper()
	for stored, err := range database.Providers(t.Context(), store.Filter{}, 0) {
		if err != nil {
			t.Fatal(err)
		}
		record := Record{Name: stored.Common().Name, PK: stored.Common().PK}
		switch provider := stored.(type) {
		case store.OAuth2Provider:
			record.Secret = provider.ClientSecret.Reveal()
		case store.WorkspaceDirectoryProvider:
			record.Secret = provider.Credentials.Reveal()
		}
		found = append(found, record)
	}
	if err := database.Close(); err != nil {
		t.Error(err)
	}
	return found
}

// StoredPKs returns the pks of the providers in the database of a server in dir.
func StoredPKs(t *testing.T, dir string) (pks []int32) {
	t.Helper()
	for _, record := range Stored(t, dir) {
		pks = append(pks, record.PK)
	}
	return pks
}

// Fill creates a database for a server in dir, with as many providers of both kinds as rows.
func Fill(t *testing.T, dir string, rows int) {
	t.Helper()
	if err := storetest.FillSQLite(t.Context(), filepath.Join(dir, "data", "providerd.db"), rows); err != nil {
		t.Fatal(err)
	}
}

// CheckIntegrity runs SQLite's integrity check on a database.
func CheckIntegrity(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	var verdict string
	err = db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict)
	if err := errors.Join(err, db.Close()); err != nil || verdict != "ok" {
		t.Errorf("integrity_check returned %q, %v", verdict, err)
	}
}
