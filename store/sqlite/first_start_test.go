package sqlite_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

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
		processtest.Must(t, os.WriteFile(path, nil, 0o600))
		storetest.Execute(t, path, left.statements)
		if _, err := sqlite.Open(t.Context(), path, slog.New(slog.DiscardHandler)); !errors.Is(err, left.want) {
			t.Errorf("%s: Open: error is %v, want %v", name, err, left.want)
		}
		r, err := createRig(t.Context(), path, slog.New(slog.DiscardHandler))
		if err == nil {
			err = errors.Join(r.commit(t.Context(), "first"), r.Close())
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A database without a keyset is complete for SQLite, but not for the store.
func TestFirstStartKilledBeforeKeyset(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	processtest.Must(t, create(t, path))
	if _, err := storetest.OpenSQLite(t.Context(), path, ""); !errors.Is(err, database.ErrOlder) {
		t.Errorf("error is %v, want ErrOlder", err)
	}
	for _, open := range []func(ctx context.Context, path, keyset string) (*store.Store, error){
		storetest.CreateSQLite, storetest.OpenSQLite,
	} {
		opened, err := open(t.Context(), path, "")
		processtest.Must(t, err)
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
	processtest.Must(t, os.Chown(dir, someUser, someGroup), os.WriteFile(elsewhere, nil, 0o600),
		os.Symlink(elsewhere, link), create(t, link), create(t, path))
	processtest.ExpectOwner(t, path, someUser, someGroup)
	processtest.ExpectOwner(t, elsewhere, 0, 0)
	if sizeOf(t, elsewhere) == 0 {
		t.Error("the database is not where the link leads")
	}
}
