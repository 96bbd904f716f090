package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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
		"busy_timeout":       {"20", "20", "5000"},
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
			processtest.Check(t, err)
		}
		processtest.Expect(t, got == want, "%s is %+v, want %+v", name, got, want)
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
		processtest.Expect(t, errors.Is(err, want), "%v: error is %v, want %v", mode, err, want)
		if err != nil {
			continue
		}
		processtest.Must(t, opened.commit(t.Context(), mode.String()))
		opened.close(t)
	}
}

// Open refuses what a killed first start left. The next start completes it, but not a copy of it without its WAL.
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
		db, err := sql.Open("sqlite3", path)
		processtest.Must(t, err)
		_, err = db.ExecContext(t.Context(), left.statements)
		processtest.Must(t, err)
		if name == "application_id in WAL mode" {
			// A close would delete the WAL.
			killed := filepath.Join(t.TempDir(), "test.db")
			processtest.Must(t, copyTo(path, killed), copyTo(path+"-wal", killed+"-wal"))
			path = killed
		}
		processtest.Must(t, db.Close())
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
			processtest.Expect(t, err == nil, "%s: %v", name, err)
		}
	}
	copied := filepath.Join(t.TempDir(), "test.db")
	storetest.Execute(t, copied, "PRAGMA journal_mode = wal;"+mark)
	_, created := storetest.CreateSQLite(t.Context(), copied, "")
	_, viewed := sqlite.OpenReadOnly(t.Context(), copied)
	processtest.Expect(t, errors.Is(created, database.ErrUnavailable) && errors.Is(viewed, database.ErrUnavailable),
		"copy without its WAL: errors are %v and %v", created, viewed)
}

// A user who plants links to files of root as their database and keyset does not get those files.
func TestRootChownsNoLinkedFiles(t *testing.T) {
	t.Parallel()
	processtest.NeedRoot(t)
	link, ofRoot := filepath.Join(t.TempDir(), "link"), filepath.Join(t.TempDir(), "elsewhere")
	_, err := seal.ReadOrCreateMasterKeys(ofRoot + ".json")
	processtest.Must(t, err, os.WriteFile(ofRoot+".db", nil, 0o600), os.Chown(filepath.Dir(link), 1234, 2234),
		os.Symlink(ofRoot+".db", link+".db"), os.Symlink(ofRoot+".json", link+".json"))
	opened, err := storetest.CreateSQLite(t.Context(), link+".db", link+".json")
	processtest.Closing(t, opened, err)
	processtest.ExpectOwner(t, ofRoot+".db", 0, 0)
	processtest.ExpectOwner(t, ofRoot+".json", 0, 0)
	processtest.Expect(t, sizeOf(t, ofRoot+".db") != 0, "the database is not where the link leads")
}

func noProgress(int64, int64) {}

// noCheck accepts every backup.
func noCheck(database.Readable) error { return nil }

// A backup is rejected, and leaves nothing, if it lacks a row, though integrity_check finds nothing, or if the files of
// the database were replaced while it ran, so that it is unknown what was copied.
func TestWrongBackupIsRejected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	processtest.Must(t, r.insert("first", 10), r.insert("second", 10))
	for want, harm := range map[string]func(draft string){
		"entries:1 ": func(draft string) { storetest.Execute(t, draft, "DELETE FROM entries WHERE slug = 'first'") },
		"removed or replaced while in use": func(string) {
			processtest.Must(t, os.Rename(r.path+"-shm", r.path+"-shm.away"))
		},
	} {
		dir := t.TempDir()
		err := r.Backup(t.Context(), filepath.Join(dir, "backup.db"), func(done, total int64) {
			drafts, err := filepath.Glob(filepath.Join(dir, ".backup.db[0-9]*"))
			processtest.Require(t, err == nil && len(drafts) == 1 && done == total,
				"%d of %d bytes are copied to %v, %v", done, total, drafts, err)
			harm(drafts[0])
		}, noCheck)
		processtest.Expect(t, errors.Is(err, database.ErrUnavailable) && strings.Contains(err.Error(), want),
			"error is %v, want %q", err, want)
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("found %v, %v", left, err)
		}
		if err := os.Rename(r.path+"-shm.away", r.path+"-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	r.close(t)
}

// A database that a program opens while the backup is copied and checked is not replaced, whether it existed before or
// was created in the meantime.
func TestRestoreRechecksBeforeReplacing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	processtest.Must(t, r.commit(t.Context(), "kept"), r.Backup(t.Context(), backup, noProgress, noCheck))
	processtest.Must(t, r.commit(t.Context(), "later"))
	r.close(t)
	restoration := sqlite.Restoration{
		Backup: backup, Database: r.path, Replace: true, Progress: noProgress, Restored: func(*gorm.DB) error { return nil },
	}
	var other processtest.Other
	restoration.Check = func(database.Readable) error {
		other = processtest.StartSelf(t, "commit", r.path)
		return nil
	}
	if kept, err := restoration.Run(t.Context()); !errors.Is(err, database.ErrInUse) || kept != "" {
		t.Errorf("error is %v, %q is kept", err, kept)
	}
	other.End(t)
	made := filepath.Join(t.TempDir(), "made.db")
	restoration.Database, restoration.Replace = made, false
	restoration.Check = func(database.Readable) error { return os.WriteFile(made, []byte("made"), 0o600) }
	if kept, err := restoration.Run(t.Context()); !errors.Is(err, fs.ErrExist) || kept != "" {
		t.Errorf("error is %v, %q is kept", err, kept)
	}
	if content, err := os.ReadFile(made); err != nil || string(content) != "made" {
		t.Errorf("content is %.20q, %v", content, err)
	}
	opened, err := openRig(t.Context(), r.path)
	processtest.Must(t, err)
	if got, want := opened.slugs(t), []string{"kept", "later", "of a program"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	opened.close(t)
}
