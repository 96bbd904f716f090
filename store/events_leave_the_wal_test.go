package store_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"example.com/providerd/store"
)

// The WAL can be reset while events are read, however long that takes.
func TestReadingEventsDoesNotBlockWALReset(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	database := create(t, path)
	fill(t, database, path, "a")
	seen := 0
	for event, err := range database.Events(t.Context(), store.Filter{}, store.EventCursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 2 {
			fill(t, database, path, "b")
		}
		if event.Event == store.EventProviderCreated && event.Name == "" {
			t.Errorf("event is %+v", event)
		}
	}
	if stored := len(names(t, database)); seen != stored+1 {
		t.Errorf("read %d events, want those of %d providers and a key", seen, stored)
	}
}

// fill runs creates until the WAL is reset.
func fill(t *testing.T, database *store.Store, path, name string) {
	t.Helper()
	const limit = 5000
	before := walHeader(t, path)
	for i := range limit {
		if err := database.Submit(t.Context(), fmt.Sprint(name, i)).Wait(); err != nil {
			t.Fatal(err)
		}
		if i > 0 && walHeader(t, path) != before {
			return
		}
	}
	t.Fatalf("the WAL is not reset after %d creates", limit)
}

// walHeader returns the header of the WAL. Its salts change at each reset.
func walHeader(t *testing.T, path string) [32]byte {
	t.Helper()
	file, err := os.Open(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	var header [32]byte
	_, err = io.ReadFull(file, header[:])
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return header
}
