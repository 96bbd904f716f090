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

// Record is a provider, as a response or the database has it.
type Record struct {
	Name string
	PK   int32
	// Secret is the client secret or the credentials.
	Secret string
}

// openData opens the database in the folder of a server.
func openData(
	t *testing.T, folder string, open func(ctx context.Context, path, keysetPath string) (*store.Store, error),
) *store.Store {
	t.Helper()
	database, err := open(t.Context(), filepath.Join(folder, "data", "providerd.db"), "")
	if err != nil {
		t.Fatal(err)
	}
	return database
}

// Stored returns the providers that the database in the folder of a server has.
func Stored(t *testing.T, folder string) []Record {
	t.Helper()
	return readAll(t, openData(t, folder, storetest.OpenSQLite))
}

// readAll returns the providers of a database, in the order of their pks, and closes it.
func readAll(t *testing.T, database *store.Store) (found []Record) {
	t.Helper()
	for record, err := range database.Providers(t.Context(), store.Filter{}, 0) {
		if err != nil {
			t.Fatal(err)
		}
		one := Record{Name: record.Common().Name, PK: record.Common().PK}
		switch provider := record.(type) {
		case store.OAuth2Provider:
			one.Secret = provider.ClientSecret.Reveal()
		case store.WorkspaceDirectoryProvider:
			one.Secret = provider.Credentials.Reveal()
		}
		found = append(found, one)
	}
	if err := database.Close(); err != nil {
		t.Error(err)
	}
	return found
}

// StoredPKs returns the pks of the providers that the database in the folder of a server has.
func StoredPKs(t *testing.T, folder string) (pks []int32) {
	t.Helper()
	for _, one := range Stored(t, folder) {
		pks = append(pks, one.PK)
	}
	return pks
}

// Fill makes a database in the folder of a server, with so many providers of both kinds.
func Fill(t *testing.T, folder string, rows int) {
	t.Helper()
	if err := storetest.FillSQLite(t.Context(), filepath.Join(folder, "data", "providerd.db"), rows); err != nil {
		t.Fatal(err)
	}
}

// CheckIntegrity lets SQLite check the file of a database.
func CheckIntegrity(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	var verdict string
	err = db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict)
	if err := errors.Join(err, db.Close()); err != nil || verdict != "ok" {
		t.Errorf("integrity_check says %q, %v", verdict, err)
	}
}
