package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gorm.io/gorm"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// Databases that cannot be used are rejected. That of another program is not changed, not even its journal mode.
func TestOpenRejectsUnusableDatabases(t *testing.T) {
	t.Parallel()
	discard, dir := slog.New(slog.DiscardHandler), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	foreign := at("foreign")
	processtest.Must(t, create(t, at("newer")), create(t, at("older")), create(t, at("exposed")), os.Chmod(at("exposed"), 0o620),
		os.WriteFile(at("empty"), nil, 0o600), syscall.Mkfifo(at("fifo"), 0o600),
		os.WriteFile(at("rubbish"), []byte(strings.Repeat("rubbish ", 1000)), 0o600))
	storetest.Execute(t, at("newer"), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, TRUE)")
	storetest.Execute(t, at("older"), "DELETE FROM goose_db_version WHERE version_id > 0")
	storetest.Execute(t, foreign, "CREATE TABLE t (a)")
	storetest.Execute(t, at("marked"), "PRAGMA application_id = 7; CREATE TABLE t (a)")
	before, err := os.ReadFile(foreign)
	processtest.Must(t, err)
	expect := func(open openFunc, errs map[string]error) {
		for name, want := range errs {
			if _, err := open(t.Context(), at(name), discard); !errors.Is(err, want) {
				t.Errorf("%s: error is %v, want %v", name, err, want)
			}
		}
	}
	expect(sqlite.Open, map[string]error{
		"newer": database.ErrNewer, "older": database.ErrOlder, "foreign": database.ErrForeign, "marked": database.ErrForeign,
		"empty": database.ErrNoDatabase, "exposed": database.ErrInsecureMode, "rubbish": database.ErrUnavailable,
		"missing": database.ErrNoDatabase, "no/dir": database.ErrNoDatabase,
	})
	expect(sqlite.Create, map[string]error{
		"newer": database.ErrNewer, "rubbish": database.ErrUnavailable, "foreign": database.ErrForeign,
		"marked": database.ErrForeign, "exposed": database.ErrInsecureMode, "fifo": database.ErrUnavailable,
	})
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
		"busy_timeout":       {"5000", "20", "5000"},
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

// Open refuses what a killed first start left. The next start completes it.
func TestKilledFirstStart(t *testing.T) {
	t.Parallel()
	const mark = "PRAGMA application_id = 0x70766464;"
	const versions = `CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')));
		INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, TRUE);`
	migrated := filepath.Join(t.TempDir(), "test.db")
	processtest.Must(t, create(t, migrated))
	for name, left := range map[string]struct {
		file, statements string
		want             error
	}{
		"empty file":                 {os.DevNull, ";", database.ErrNoDatabase},
		"WAL mode":                   {os.DevNull, "PRAGMA journal_mode = wal", database.ErrNoDatabase},
		"application_id":             {os.DevNull, mark, database.ErrOlder},
		"application_id in WAL mode": {os.DevNull, "PRAGMA journal_mode = wal;" + mark, database.ErrOlder},
		"table of versions":          {os.DevNull, mark + versions, database.ErrOlder},
		"no keyset":                  {migrated, ";", database.ErrOlder},
	} {
		path := filepath.Join(t.TempDir(), "test.db")
		processtest.Must(t, copyTo(left.file, path))
		storetest.Execute(t, path, left.statements)
		if _, err := storetest.OpenSQLite(t.Context(), path, ""); !errors.Is(err, left.want) {
			t.Errorf("%s: Open: error is %v, want %v", name, err, left.want)
		}
		for _, open := range []func(ctx context.Context, path, keyset string) (*store.Store, error){
			storetest.CreateSQLite, storetest.OpenSQLite,
		} {
			opened, err := open(t.Context(), path, "")
			if err == nil {
				err = opened.Close()
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// What root creates belongs to the owner of its directory. A user who plants links to files of root as their database
// and keyset does not get those files.
func TestRootChownsOnlyNewFiles(t *testing.T) {
	t.Parallel()
	processtest.NeedRoot(t)
	const someUser, someGroup = 1234, 2234
	own, ofRoot := filepath.Join(t.TempDir(), "test"), filepath.Join(t.TempDir(), "elsewhere")
	_, err := seal.ReadOrCreateMasterKeys(ofRoot + ".json")
	processtest.Must(t, err, os.WriteFile(ofRoot+".db", nil, 0o600), os.Chown(filepath.Dir(own), someUser, someGroup),
		os.Symlink(ofRoot+".db", own+".link.db"), os.Symlink(ofRoot+".json", own+".link.json"))
	for _, path := range []string{own, own + ".link"} {
		opened, err := storetest.CreateSQLite(t.Context(), path+".db", path+".json")
		processtest.Closing(t, opened, err)
	}
	for _, suffix := range []string{".db", ".json"} {
		processtest.ExpectOwner(t, own+suffix, someUser, someGroup)
		processtest.ExpectOwner(t, ofRoot+suffix, 0, 0)
	}
	if sizeOf(t, ofRoot+".db") == 0 {
		t.Error("the database is not where the link leads")
	}
}
