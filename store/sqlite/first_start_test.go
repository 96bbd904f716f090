package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/durable"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// Programs that create a database concurrently all get a complete one.
func TestConcurrentCreate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "test.db")
	const openers = 8
	rigs := make([]*rig, openers)
	var group sync.WaitGroup
	for i := range rigs {
		group.Go(func() {
			r, err := createRig(t.Context(), path, slog.New(slog.DiscardHandler))
			if err == nil {
				err = r.commit(t.Context(), fmt.Sprint(i))
			}
			if rigs[i] = r; err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, r := range rigs {
		if stored := r.slugs(t); len(stored) != openers {
			t.Errorf("stored: %v", stored)
		}
	}
	for _, r := range rigs {
		r.close(t)
	}
}

// waiting is a context that closes a channel when it is first waited for.
type waiting struct {
	context.Context
	started chan struct{}
	once    *sync.Once
}

func newWaiting(ctx context.Context) waiting {
	return waiting{Context: ctx, started: make(chan struct{}), once: new(sync.Once)}
}

func (w waiting) Done() <-chan struct{} {
	w.once.Do(func() { close(w.started) })
	return w.Context.Done()
}

// openFunc opens a database.
type openFunc func(ctx context.Context, path string, logger *slog.Logger) (*sqlite.Database, error)

// Whatever the files look like while another program creates them, Create and Open wait until it is done.
func TestCreateWaitsForTheCreator(t *testing.T) {
	t.Parallel()
	whole := filepath.Join(t.TempDir(), "whole.db")
	if err := create(t, whole); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]openFunc{
		"Create": sqlite.Create, "Open": sqlite.Open,
	} {
		dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link.db")
		path := filepath.Join(dir, "test.db")
		ctx, outcome := newWaiting(t.Context()), make(chan error, 1)
		err := durable.WithLock(t.Context(), dir, func() error {
			if err := errors.Join(os.WriteFile(path, nil, 0o600), os.WriteFile(path+"-wal", []byte("new"), 0o600),
				os.Symlink(path, link)); err != nil {
				return err
			}
			go func() {
				opened, err := open(ctx, link, slog.New(slog.DiscardHandler))
				if err == nil {
					err = opened.Close()
				}
				if err == nil && opened.IsNew() {
					err = errors.New("IsNew reports that it created the database")
				}
				outcome <- err
			}()
			select {
			case err := <-outcome:
				return fmt.Errorf("it did not wait: %w", err)
			case <-ctx.started:
			}
			return errors.Join(os.Remove(path+"-wal"), os.Link(whole, path+".new"), os.Rename(path+".new", path))
		})
		if err == nil {
			err = <-outcome
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// wantUsable opens a database and commits to it.
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
