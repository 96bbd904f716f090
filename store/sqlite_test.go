package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// inOneQueue queues creates in order behind a first one that it blocks until each of them waits or has ended. The faults
// apply to the inserts after the first. It returns the errors of the creates in the same order, and the sizes of their
// inserts.
func inOneQueue(
	t *testing.T, opened *store.Store, f *storetest.Faulty, count int, create func(i int) error, faults ...storetest.Fault,
) (errs []error, sizes []int) {
	t.Helper()
	begun, released := make(chan struct{}), make(chan struct{})
	f.Inject(func(f *storetest.Faulty) {
		f.Sizes = nil
		f.Inserts = append([]storetest.Fault{func(run func(error) error) error {
			close(begun)
			<-released
			return run(nil)
		}}, faults...)
	})
	var ended atomic.Int64
	var group sync.WaitGroup
	group.Go(func() {
		processtest.CheckAs(t, storetest.Add(t.Context(), opened, "first of "+seal.RandomAlphanumeric(10)), "the first create")
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
	return errs, f.Sizes[1:]
}

// addKeyed creates a provider whose key and client_id are its name.
func addKeyed(t *testing.T, opened *store.Store, name string) (pk int64, replayed bool, err error) {
	t.Helper()
	request := store.CreateRequest{Name: name, CreatedBy: "caller", IdempotencyKey: &name}
	record, replayed, err := opened.Providers.CreateOAuth2(t.Context(), request, storetest.FullOAuth2(name))
	return record.PK, replayed, err
}

// twice runs what it is called for twice.
func twice(run func(error) error) error { return errors.Join(run(nil), run(nil)) }

// failing returns a fault that stores nothing.
func failing(err error) storetest.Fault { return func(func(error) error) error { return err } }

// losing returns a fault after the commit.
func losing(err error) storetest.Fault {
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
				err = storetest.Add(t.Context(), stores[i], fmt.Sprint(i))
			}
			processtest.Check(t, err)
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
		processtest.Equal(t, len(storetest.Names(t, opened)), programs, "readable records")
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
			return storetest.Create(t, path)
		}
	})
}
