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
