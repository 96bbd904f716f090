package store_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
)

func TestCreateKeepsExistingDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a directory", "with ?#% in it.db")
	first := create(t, path)
	text, _, err := first.CreateToken(t.Context(), store.TokenGrant{Name: "x", Operations: []string{"o"}, ExpiresIn: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := create(t, path).FindToken(t.Context(), text); err != nil {
		t.Error(err)
	}
	opened, err := storetest.OpenSQLite(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
}

// SQLite's files and the keyset are created beside the target of a symbolic link.
func TestDatabaseBehindASymbolicLink(t *testing.T) {
	t.Parallel()
	dir, linked := t.TempDir(), t.TempDir()
	link, target := filepath.Join(linked, "link.db"), filepath.Join(dir, "test.db")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	first := create(t, link)
	if err := errors.Join(first.Submit(t.Context(), "x").Wait(), first.Close()); err != nil {
		t.Fatal(err)
	}
	if stored := names(t, create(t, target)); !stored["x"] {
		t.Errorf("names are %v", stored)
	}
	if _, err := os.Stat(filepath.Join(dir, "keyset.json")); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheOwnerCanRead(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	create(t, filepath.Join(dir, "test.db"))
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 2 {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", entry.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory has mode %v, %v", info.Mode(), err)
	}
}

func execute(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
