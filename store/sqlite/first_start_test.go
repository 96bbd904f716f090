package sqlite_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// wantUsable opens a database and commits to it.
func wantUsable(t *testing.T, path string) {
	t.Helper()
	r, err := openRig(t.Context(), path)
	if err != nil {
		t.Error(err)
		return
	}
	if err := errors.Join(r.prepare(t.Context()), r.commit(t.Context(), "first")); err != nil {
		t.Error(err)
	}
	r.close(t)
}

// Open refuses what a killed first start left. The next start completes it.
func TestKilledFirstStart(t *testing.T) {
	t.Parallel()
	const mark = "PRAGMA application_id = 0x70766464;"
	const versions = `CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')));
		INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, TRUE);`
	for name, left := range map[string]struct {
		statements string
		want       error
	}{
		"empty file":                 {";", database.ErrNoDatabase},
		"WAL mode":                   {"PRAGMA journal_mode = wal", database.ErrNoDatabase},
		"application_id":             {mark, database.ErrOlder},
		"application_id in WAL mode": {"PRAGMA journal_mode = wal;" + mark, database.ErrOlder},
		"table of versions":          {mark + versions, database.ErrOlder},
	} {
		path := filepath.Join(t.TempDir(), "test.db")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		execute(t, path, left.statements)
		if _, err := sqlite.Open(t.Context(), path, slog.New(slog.DiscardHandler)); !errors.Is(err, left.want) {
			t.Errorf("%s: Open: error is %v, want %v", name, err, left.want)
		}
		if err := create(t, path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantUsable(t, path)
	}
}

// A database without a keyset is complete for SQLite, but not for the store.
func TestFirstStartKilledBeforeKeyset(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	if err := create(t, path); err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.OpenSQLite(t.Context(), path, ""); !errors.Is(err, database.ErrOlder) {
		t.Errorf("error is %v, want ErrOlder", err)
	}
	for _, open := range []func(ctx context.Context, path, keyset string) (*store.Store, error){
		storetest.CreateSQLite, storetest.OpenSQLite,
	} {
		opened, err := open(t.Context(), path, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A user who plants a link to a file of root as their database does not get that file.
func TestRootChownsOnlyNewFiles(t *testing.T) {
	t.Parallel()
	processtest.NeedRoot(t)
	const someUser, someGroup = 1234, 2234
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
	link, path := filepath.Join(dir, "link.db"), filepath.Join(dir, "new.db")
	if err := errors.Join(os.Chown(dir, someUser, someGroup), os.WriteFile(elsewhere, nil, 0o600),
		os.Symlink(elsewhere, link), create(t, link), create(t, path)); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]uint32{elsewhere: 0, path: someUser} {
		info, err := os.Lstat(file)
		if err != nil {
			t.Fatal(err)
		}
		if native, ok := info.Sys().(*syscall.Stat_t); !ok || native.Uid != want || info.Size() == 0 {
			t.Errorf("%s belongs to %d and has %d bytes", file, native.Uid, info.Size())
		}
	}
}
