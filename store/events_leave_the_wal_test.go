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

// However long somebody looks at the events, the WAL is reset meanwhile.
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
		t.Errorf("%d events are seen, want those of %d providers and a key", seen, stored)
	}
}

// fill makes creates until the WAL is reset.
func fill(t *testing.T, database *store.Store, path, name string) {
	t.Helper()
	const most = 5000
	before := walHeader(t, path)
	for i := range most {
		if err := database.Submit(t.Context(), fmt.Sprint(name, i)).Wait(); err != nil {
			t.Fatal(err)
		}
		if i > 0 && walHeader(t, path) != before {
			return
		}
	}
	t.Fatalf("the WAL is not reset after %d creates", most)
}

// walHeader has the salts, which tell the generations of the WAL apart.
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
