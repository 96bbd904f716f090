package store_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"example.com/providerd/store"
)

// The WAL can be reset while events are read, however long that takes.
func TestReadingEventsDoesNotBlockWALReset(t *testing.T) {
	t.Parallel()
	database := create(t, filepath.Join(t.TempDir(), "test.db"))
	fill(t, database, "a")
	seen := 0
	for event, err := range database.Events(t.Context(), store.EventFilter{}, 0) {
		if err != nil {
			t.Fatal(err)
		}
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
		if err := add(t.Context(), database, fmt.Sprint(name, i)); err != nil {
			t.Fatal(err)
		}
		if database.Stats().Database.WAL.Pages < before {
			return
		}
	}
	t.Fatalf("the WAL is not reset after %d creates", limit)
}
