package sqlite_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// Databases that cannot be used are rejected. That of another program is not changed, not even its journal mode.
func TestOpenRejectsUnusableDatabases(t *testing.T) {
	t.Parallel()
	discard := slog.New(slog.DiscardHandler)
	dir := t.TempDir()
	newer, older := filepath.Join(dir, "newer.db"), filepath.Join(dir, "older.db")
	exposed := filepath.Join(dir, "exposed.db")
	processtest.Must(t, create(t, newer), create(t, older), create(t, exposed), os.Chmod(exposed, 0o620))
	storetest.Execute(t, newer, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, TRUE)")
	storetest.Execute(t, older, "DELETE FROM goose_db_version WHERE version_id > 0")
	foreign := filepath.Join(dir, "foreign.db")
	storetest.Execute(t, foreign, "CREATE TABLE t (a)")
	marked := filepath.Join(dir, "marked.db")
	storetest.Execute(t, marked, "PRAGMA application_id = 7; CREATE TABLE t (a)")
	empty := filepath.Join(dir, "empty.db")
	fifo, rubbish := filepath.Join(dir, "fifo.db"), filepath.Join(dir, "rubbish.db")
	processtest.Must(t, os.WriteFile(empty, nil, 0o600), syscall.Mkfifo(fifo, 0o600),
		os.WriteFile(rubbish, []byte(strings.Repeat("rubbish ", 1000)), 0o600))
	before, err := os.ReadFile(foreign)
	processtest.Must(t, err)
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
	after, err := os.ReadFile(foreign)
	if files, globErr := filepath.Glob(foreign + "*"); err != nil || !bytes.Equal(after, before) || len(files) != 1 {
		t.Errorf("the file was changed, or is not alone: %v, %v, %v", files, err, globErr)
	}
	for _, url := range []string{"", "sqlite:", "test.db", "mysql:x"} {
		if path, err := sqlite.Path(url); err == nil {
			t.Errorf("Path accepts %q as %q", url, path)
		}
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

// Commits are durable because of these settings, which every connection that commits must have.
func TestSettingsOfEveryConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	processtest.Must(t, r.commit(t.Context(), "x"))
	for name, want := range map[string]struct{ inserts, changes, reads string }{
		"journal_mode":       {"wal", "wal", "wal"},
		"synchronous":        {"2", "2", "2"},
		"foreign_keys":       {"0", "1", "1"},
		"busy_timeout":       {"5000", "5000", "5000"},
		"query_only":         {"0", "0", "1"},
		"wal_autocheckpoint": {"0", "1000", "1000"},
		"journal_size_limit": {"134217728", "-1", "-1"},
	} {
		got := want
		read := func(into *string) func(tx *gorm.DB) error {
			return func(tx *gorm.DB) error { return tx.Raw("PRAGMA " + name).Scan(into).Error }
		}
		for _, err := range []error{
			r.Inserter().QueryRowContext(t.Context(), "PRAGMA "+name).Scan(&got.inserts),
			r.Write(t.Context(), read(&got.changes)),
			read(&got.reads)(r.Reader().WithContext(t.Context())),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		if got != want {
			t.Errorf("%s is %+v, want %+v", name, got, want)
		}
	}
	r.close(t)
}

// A database in a directory in which anyone can replace files is refused, unless the directory is sticky, as /tmp is. A
// user_version that SQLite reads as negative is the generation of a database like any other.
func TestOpenInUnusualState(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.close(t)
	storetest.Execute(t, r.path, "PRAGMA user_version = -1")
	for mode, want := range map[os.FileMode]error{0o777: database.ErrInsecureMode, 0o777 | fs.ModeSticky: nil, 0o770: nil} {
		processtest.Must(t, os.Chmod(filepath.Dir(r.path), mode))
		opened, err := openRig(t.Context(), r.path)
		if !errors.Is(err, want) {
			t.Errorf("%v: error is %v, want %v", mode, err, want)
		}
		if err != nil {
			continue
		}
		if err := opened.commit(t.Context(), mode.String()); err != nil {
			t.Error(err)
		}
		opened.close(t)
	}
}
