package sqlite_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
)

// A database that is there is not made again, and what it has stays.
func TestCreateTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.commit(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := create(t, r.path); err != nil {
			t.Error(err)
		}
	}
	if err := r.commit(t.Context(), "b"); err != nil {
		t.Error(err)
	}
	if stored := r.slugs(t); len(stored) != 2 {
		t.Errorf("stored are %v", stored)
	}
	r.close(t)
}

// Of many that make a database at the same time, each finds it whole.
func TestCreateAtTheSameTime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "test.db")
	const openers = 8
	rigs := make([]*rig, openers)
	var group sync.WaitGroup
	for i := range rigs {
		group.Go(func() {
			opened, err := sqlite.Create(t.Context(), path, slog.New(slog.DiscardHandler))
			if err == nil {
				rigs[i], err = connectRig(t.Context(), opened, path)
			}
			if err == nil {
				err = rigs[i].commit(t.Context(), fmt.Sprint(i))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, r := range rigs {
		if stored := r.slugs(t); len(stored) != openers {
			t.Errorf("stored are %v", stored)
		}
	}
	for _, r := range rigs {
		r.close(t)
	}
}

func TestCreateInTwoProcesses(t *testing.T) {
	t.Parallel()
	for range 3 {
		path := filepath.Join(t.TempDir(), "test.db")
		one, two := start(t, "create", path), start(t, "create", path)
		one.proceed(t)
		two.proceed(t)
		one.end(t)
		two.end(t)
		wantUsable(t, path)
	}
}

// wantUsable opens a database that is to be whole, and commits to it.
func wantUsable(t *testing.T, path string) {
	t.Helper()
	r, err := openRig(t.Context(), path)
	if err != nil {
		t.Error(err)
		return
	}
	if err := r.commit(t.Context(), "first"); err != nil {
		t.Error(err)
	}
	r.close(t)
}

// Whatever a first start leaves that was killed, Open refuses it, and the next start makes it whole.
func TestFirstStartThatWasKilled(t *testing.T) {
	t.Parallel()
	const mark = "PRAGMA application_id = 0x70766464;"
	const versions = `CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')));
		INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, TRUE);`
	for name, left := range map[string]struct {
		statements string
		want       error
	}{
		"empty file":        {";", database.ErrNone},
		"WAL mode":          {"PRAGMA journal_mode = wal", database.ErrNone},
		"mark":              {mark, database.ErrOlder},
		"mark in WAL mode":  {"PRAGMA journal_mode = wal;" + mark, database.ErrOlder},
		"table of versions": {mark + versions, database.ErrOlder},
	} {
		path := filepath.Join(t.TempDir(), "test.db")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		execute(t, path, left.statements)
		if _, err := sqlite.Open(t.Context(), path, slog.New(slog.DiscardHandler)); !errors.Is(err, left.want) {
			t.Errorf("%s: error of Open is %v, want %v", name, err, left.want)
		}
		if err := create(t, path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantUsable(t, path)
	}
}

// A database whose keyset was not made yet is whole for SQLite, but not for the store.
func TestFirstStartThatWasKilledBeforeTheKeyset(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	if err := create(t, path); err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.OpenSQLite(t.Context(), path, ""); !errors.Is(err, database.ErrOlder) {
		t.Errorf("error is %v, want ErrOlder", err)
	}
	for _, open := range []func() (interface{ Close() error }, error){
		func() (interface{ Close() error }, error) { return storetest.CreateSQLite(t.Context(), path, "") },
		func() (interface{ Close() error }, error) { return storetest.OpenSQLite(t.Context(), path, "") },
	} {
		opened, err := open()
		if err != nil {
			t.Fatal(err)
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The same, with first starts that are killed for good.
func TestKilledFirstStarts(t *testing.T) {
	t.Parallel()
	var whole int
	for i := range 12 {
		path := filepath.Join(t.TempDir(), "test.db")
		first := start(t, "create", path)
		killed := make(chan struct{})
		first.proceed(t)
		time.AfterFunc(time.Duration(i)*3*time.Millisecond, func() {
			defer close(killed)
			first.kill(t)
		})
		<-killed
		opened, err := sqlite.Open(t.Context(), path, slog.New(slog.DiscardHandler))
		switch {
		case err == nil:
			whole++
			if err := opened.Close(); err != nil {
				t.Error(err)
			}
		case !errors.Is(err, database.ErrNone) && !errors.Is(err, database.ErrOlder):
			t.Errorf("killed after %d ms: %v", 3*i, err)
		}
		if err := create(t, path); err != nil {
			t.Errorf("killed after %d ms: %v", 3*i, err)
		}
		wantUsable(t, path)
	}
	t.Logf("%d of 12 were whole", whole)
}
