package store_test

import (
	"path/filepath"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
)

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
	database, err := storetest.CreateSQLite(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := database.Close(); err != nil {
			t.Error(err)
		}
	})
	return database
}
