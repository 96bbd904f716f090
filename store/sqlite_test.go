package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/event"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// fault is called instead of a Read, Write or Insert. It may run it, with an error for the end of the transaction of a
// Read or Write.
type fault func(run func(end error) error) error

// faultyDatabase is a SQLite database with faults injected into its next statements. It records the inserts.
type faultyDatabase struct {
	database.Database
	// path is that of the database, and keyset that of its keyset file.
	path, keyset string

	mutex                  sync.Mutex
	inserts, reads, writes []fault
	// sizes holds the number of rows of each insert.
	sizes []int
}

// newFaulty opens a store over a faulty database. Both are closed when the test ends.
func newFaulty(t *testing.T) (*store.Store, *faultyDatabase) {
	t.Helper()
	dir := t.TempDir()
	path, keyset := filepath.Join(dir, "test.db"), filepath.Join(dir, "keyset.json")
	db, err := sqlite.Create(t.Context(), path, slog.New(slog.DiscardHandler))
	processtest.Must(t, err)
	faulty := &faultyDatabase{Database: db, path: path, keyset: keyset}
	opened, err := store.Create(t.Context(), faulty, keyset)
	return processtest.Closing(t, opened, err), faulty
}

// next removes and returns the fault of the next call from a list.
func (f *faultyDatabase) next(list *[]fault) fault {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(*list) == 0 {
		return passing
	}
	first := (*list)[0]
	*list = (*list)[1:]
	return first
}

func (f *faultyDatabase) Read(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return f.next(&f.reads)(func(end error) error {
		return f.Database.Read(ctx, func(tx *gorm.DB) error { return errors.Join(statements(tx), end) })
	})
}

func (f *faultyDatabase) Write(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return f.next(&f.writes)(func(end error) error {
		return f.Database.Write(ctx, func(tx *gorm.DB) error { return errors.Join(statements(tx), end) })
	})
}

func (f *faultyDatabase) Insert(ctx context.Context, rows database.Insertion) (map[uuid.UUID]int64, error) {
	f.count(func(f *faultyDatabase) { f.sizes = append(f.sizes, len(rows.Rows)) })
	var pks map[uuid.UUID]int64
	err := f.next(&f.inserts)(func(error) (err error) {
		pks, err = f.Database.Insert(ctx, rows)
		return err
	})
	if err != nil {
		return nil, err
	}
	return pks, nil
}

func (f *faultyDatabase) count(change func(f *faultyDatabase)) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	change(f)
}

// inOneQueue queues creates in order behind a first one that it blocks until each of them waits or has ended. The faults
// apply to the inserts after the first. It returns the errors of the creates in the same order, and the sizes of their
// inserts.
func (f *faultyDatabase) inOneQueue(
	t *testing.T, opened *store.Store, count int, create func(i int) error, faults ...fault,
) (errs []error, sizes []int) {
	t.Helper()
	begun, released := make(chan struct{}), make(chan struct{})
	f.count(func(f *faultyDatabase) {
		f.sizes = nil
		f.inserts = append([]fault{func(run func(error) error) error {
			close(begun)
			<-released
			return run(nil)
		}}, faults...)
	})
	var ended atomic.Int64
	var group sync.WaitGroup
	group.Go(func() {
		if err := add(t.Context(), opened, "first of "+seal.RandomAlphanumeric(10)); err != nil {
			t.Errorf("the first create: %v", err)
		}
	})
	<-begun
	errs = make([]error, count)
	for i := range count {
		group.Go(func() {
			errs[i] = create(i)
			ended.Add(1)
		})
		// A create that gives up in the queue counts twice.
		for opened.Stats().QueueLength+int(ended.Load()) < i+1 {
			runtime.Gosched()
		}
	}
	close(released)
	group.Wait()
	return errs, f.sizes[1:]
}

// add creates a provider whose client_id is its name.
func add(ctx context.Context, opened *store.Store, name string) error {
	_, _, err := opened.Providers.CreateOAuth2(ctx, store.CreateRequest{Name: name}, storetest.FullOAuth2(name))
	return err
}

// addKeyed creates a provider whose key and client_id are its name.
func addKeyed(t *testing.T, opened *store.Store, name string) (pk int64, replayed bool, err error) {
	t.Helper()
	request := store.CreateRequest{Name: name, CreatedBy: "caller", IdempotencyKey: &name}
	record, replayed, err := opened.Providers.CreateOAuth2(t.Context(), request, storetest.FullOAuth2(name))
	return record.PK, replayed, err
}

func names(t *testing.T, database *store.Store) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, record := range storetest.Collect(t, database.Providers.Opened(t.Context(), database.Providers.List(t.Context(), store.Filter{}, 0))) {
		names[record.Common().Name] = true
	}
	return names
}

// passing runs what it is called for without a fault.
func passing(run func(error) error) error { return run(nil) }

// twice runs what it is called for twice.
func twice(run func(error) error) error { return errors.Join(run(nil), run(nil)) }

// failing returns a fault that stores nothing.
func failing(err error) fault { return func(func(error) error) error { return err } }

// losing returns a fault after the commit.
func losing(err error) fault {
	return func(run func(error) error) error { return errors.Join(run(nil), err) }
}

// Programs that start concurrently for the first time all get the same complete database and keyset. Commands find no
// database until then.
func TestConcurrentFirstStarts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "test.db")
	const programs = 16
	stores := make([]*store.Store, programs)
	var group sync.WaitGroup
	for i := range programs {
		group.Go(func() {
			var err error
			if i%4 > 0 {
				stores[i], err = storetest.CreateSQLite(t.Context(), path, "")
			} else {
				err = database.ErrNoDatabase
			}
			for errors.Is(err, database.ErrNoDatabase) || errors.Is(err, database.ErrOlder) {
				stores[i], err = storetest.OpenSQLite(t.Context(), path, "")
			}
			if err == nil {
				err = add(t.Context(), stores[i], fmt.Sprint(i))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 4 {
		t.Errorf("files are %v, %v", entries, err)
	}
	for _, opened := range stores {
		if stored := names(t, opened); len(stored) != programs {
			t.Errorf("names are %v", stored)
		}
		processtest.Must(t, opened.Close())
	}
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		t.Helper()
		path := filepath.Join(t.TempDir(), "test.db")
		return func(t *testing.T) *store.Store {
			t.Helper()
			return create(t, path)
		}
	})
}

func create(t *testing.T, path string) *store.Store {
	t.Helper()
	opened, err := storetest.CreateSQLite(t.Context(), path, "")
	return processtest.Closing(t, opened, err)
}

// The WAL can be reset while events are read, however long that takes.
func TestReadingEventsDoesNotBlockWALReset(t *testing.T) {
	t.Parallel()
	database := create(t, filepath.Join(t.TempDir(), "test.db"))
	fill(t, database, "a")
	seen := 0
	for found, err := range database.Events.List(t.Context(), event.Filter{}, 0) {
		processtest.Must(t, err)
		if seen++; seen == 2 {
			fill(t, database, "b")
		}
		if found.Event == event.ProviderCreated && found.Kind == "" {
			t.Errorf("event is %+v", found)
		}
	}
	if stored := len(names(t, database)); seen != stored+1 {
		t.Errorf("read %d events, want those of %d providers and a key", seen, stored)
	}
}

// fill runs creates until the WAL is reset, and thus has fewer pages.
func fill(t *testing.T, database *store.Store, name string) {
	t.Helper()
	const limit = 5000
	for i := range limit {
		before := database.Stats().Database.WAL.Pages
		processtest.Must(t, add(t.Context(), database, fmt.Sprint(name, i)))
		if database.Stats().Database.WAL.Pages < before {
			return
		}
	}
	t.Fatalf("the WAL is not reset after %d creates", limit)
}
