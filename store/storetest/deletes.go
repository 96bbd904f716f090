package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/providerd/store"
)

// testCreatesDuringDeletes has one store create with few keys and client_ids, and read, while the other deletes what it
// finds. No reader mistakes a provider that is being deleted for a damaged one.
func testCreatesDuringDeletes(t *testing.T, first, second *store.Store) {
	const count = 600
	var done atomic.Bool
	var group sync.WaitGroup
	group.Go(func() {
		defer done.Store(true)
		concurrently(count, func(i int) {
			request := keyed(fmt.Sprint(i%7), "x")
			if i%3 == 0 {
				request = creation("x")
			}
			_, _, err := first.CreateOAuth2Provider(t.Context(), request, FullOAuth2(fmt.Sprint(i%5)))
			isRefused := errors.Is(err, store.ErrClientIDTaken) || errors.Is(err, store.ErrKeyReused)
			if err != nil && !isRefused && !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("create: %v", err)
			}
		})
	})
	for range 4 {
		group.Go(func() {
			for !done.Load() {
				for _, err := range first.Providers(t.Context(), store.Filter{}, 0) {
					if err != nil {
						t.Errorf("read: %v", err)
					}
				}
			}
		})
	}
	deleted := map[int64]bool{}
	for isDone := false; !isDone; {
		isDone = done.Load()
		var pks []int64
		for _, record := range stored(t, second) {
			pks = append(pks, record.Common().PK)
		}
		if err := second.DeleteProviders(t.Context(), pks); err != nil {
			t.Errorf("delete: %v", err)
		}
		for _, pk := range pks {
			if deleted[pk] {
				t.Errorf("pk %d was assigned twice", pk)
			}
			deleted[pk] = true
		}
	}
	group.Wait()
	if left := stored(t, first); len(left) != 0 {
		t.Errorf("%d records are left", len(left))
	}
	created := 0
	for _, event := range Collect(t, first.Events(t.Context(), store.EventFilter{Kind: store.KindOAuth2}, 0)) {
		if event.Event == store.EventProviderCreated {
			created++
		}
	}
	if created != len(deleted) || created == 0 {
		t.Errorf("%d providers were created according to the events, %d were deleted", created, len(deleted))
	}
}
