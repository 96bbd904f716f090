package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
)

func TestOpenRejectsUnusableDatabases(t *testing.T) {
	t.Parallel()
	discard := slog.New(slog.DiscardHandler)
	dir := t.TempDir()
	newer, older := filepath.Join(dir, "newer.db"), filepath.Join(dir, "older.db")
	exposed := filepath.Join(dir, "exposed.db")
	if err := errors.Join(create(t, newer), create(t, older), create(t, exposed), os.Chmod(exposed, 0o620)); err != nil {
		t.Fatal(err)
	}
	execute(t, newer, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, TRUE)")
	execute(t, older, "DELETE FROM goose_db_version WHERE version_id > 0")
	foreign := filepath.Join(dir, "foreign.db")
	execute(t, foreign, "CREATE TABLE t (a)")
	marked := filepath.Join(dir, "marked.db")
	execute(t, marked, "PRAGMA application_id = 7; CREATE TABLE t (a)")
	empty := filepath.Join(dir, "empty.db")
	fifo, rubbish := filepath.Join(dir, "fifo.db"), filepath.Join(dir, "rubbish.db")
	if err := errors.Join(os.WriteFile(empty, nil, 0o600), syscall.Mkfifo(fifo, 0o600),
		os.WriteFile(rubbish, []byte(strings.Repeat("rubbish ", 1000)), 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		newer:                            database.ErrNewer,
		older:                            database.ErrOlder,
		foreign:                          database.ErrForeign,
		marked:                           database.ErrForeign,
		empty:                            database.ErrNoDatabase,
		exposed:                          database.ErrInsecureMode,
		rubbish:                          database.ErrUnavailable,
		filepath.Join(dir, "missing.db"): database.ErrNoDatabase,
		filepath.Join(dir, "no", "dir"):  database.ErrNoDatabase,
	} {
		if _, err := sqlite.Open(t.Context(), path, discard); !errors.Is(err, want) {
			t.Errorf("Open %s: error is %v, want %v", path, err, want)
		}
	}
	for path, want := range map[string]error{
		newer: database.ErrNewer, rubbish: database.ErrUnavailable, foreign: database.ErrForeign, marked: database.ErrForeign,
		exposed: database.ErrInsecureMode, fifo: database.ErrUnavailable,
	} {
		if _, err := sqlite.Create(t.Context(), path, discard); !errors.Is(err, want) {
			t.Errorf("Create %s: error is %v, want %v", path, err, want)
		}
	}
	for _, url := range []string{"", "sqlite:", "test.db", "mysql:x"} {
		if path, err := sqlite.Path(url); err == nil {
			t.Errorf("Path accepts %q as %q", url, path)
		}
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

// create creates a database and closes it.
func create(t *testing.T, path string) error {
	t.Helper()
	opened, err := sqlite.Create(t.Context(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return opened.Close()
}

// The database of another program is not changed, not even its journal mode.
func TestForeignDatabaseIsNotChanged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "foreign.db")
	execute(t, path, "CREATE TABLE t (a)")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := create(t, path); !errors.Is(err, database.ErrForeign) {
			t.Errorf("error is %v, want ErrForeign", err)
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the file was changed, %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("the directory contains %v, %v", entries, err)
	}
}

// If the database is missing, the WAL that a crash left is kept, and no new database is created.
func TestMissingDatabaseWithWAL(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.commit(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	crashed := filepath.Join(t.TempDir(), "test.db")
	if err := copyTo(r.path+"-wal", crashed+"-wal"); err != nil {
		t.Fatal(err)
	}
	wal := sizeOf(t, crashed+"-wal")
	_, missing := sqlite.Create(t.Context(), crashed, slog.New(slog.DiscardHandler))
	errs := []error{missing}
	if err := os.WriteFile(crashed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, open := range []openFunc{sqlite.Create, sqlite.Open, sqlite.OpenForBackup} {
		_, err := open(t.Context(), crashed, slog.New(slog.DiscardHandler))
		errs = append(errs, err)
	}
	for i, err := range errs {
		if !errors.Is(err, database.ErrUnavailable) || !strings.Contains(err.Error(), "put the database file back") {
			t.Errorf("%d: error is %v, want ErrUnavailable", i, err)
		}
	}
	if size := sizeOf(t, crashed+"-wal"); size != wal {
		t.Errorf("the WAL has %d bytes, not %d", size, wal)
	}
	if err := copyTo(r.path, crashed); err != nil {
		t.Fatal(err)
	}
	if err := create(t, crashed); err != nil {
		t.Error(err)
	}
	r.close(t)
}
