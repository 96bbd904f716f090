package event_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/event"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// The WAL can be reset while events are read, however long that takes.
func TestReadingEventsDoesNotBlockWALReset(t *testing.T) {
	t.Parallel()
	database := storetest.Create(t, filepath.Join(t.TempDir(), "test.db"))
	fill(t, database, "a")
	seen := 0
	for found, err := range database.Events.List(t.Context(), event.Filter{}, 0) {
		processtest.Must(t, err)
		if seen++; seen == 2 {
			fill(t, database, "b")
		}
		processtest.Expect(t, found.Event != event.ProviderCreated || found.Kind != "", "event is %+v", found)
	}
	processtest.Equal(t, seen, len(storetest.Names(t, database))+1, "events, of providers and a key")
}

// fill runs creates until the WAL is reset, and thus has fewer pages.
func fill(t *testing.T, database *store.Store, name string) {
	t.Helper()
	const limit = 5000
	for i := range limit {
		before := database.Stats().Database.WAL.Pages
		processtest.Must(t, storetest.Add(t.Context(), database, fmt.Sprint(name, i)))
		if database.Stats().Database.WAL.Pages < before {
			return
		}
	}
	t.Fatalf("the WAL is not reset after %d creates", limit)
}
