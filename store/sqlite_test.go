package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

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
	}
	for _, opened := range stores {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
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
	for event, err := range database.Events(t.Context(), store.EventFilter{}, 0) {
		processtest.Must(t, err)
		if seen++; seen == 2 {
			fill(t, database, "b")
		}
		if event.Event == store.EventProviderCreated && event.Kind == "" {
			t.Errorf("event is %+v", event)
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
