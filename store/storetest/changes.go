package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest/processtest"
)

// createKeyed creates an OAuth2 provider whose key is its client_id.
func createKeyed(t *testing.T, database *store.Store, key string) (replayed bool) {
	t.Helper()
	_, replayed, err := database.CreateOAuth2Provider(t.Context(), keyed(key, key), FullOAuth2(key))
	processtest.Must(t, err)
	return replayed
}

// testUpdatesDuringCreates has the second store update records, rotate keys and reseal while the first creates and
// replays. Each acknowledged update must be stored, and no create or replay may fail.
func testUpdatesDuringCreates(t *testing.T, first, second *store.Store) {
	const count, rounds = 60, 4
	for i := range count {
		createKeyed(t, first, fmt.Sprint(i))
	}
	var creates, reseals sync.WaitGroup
	var done atomic.Bool
	creates.Go(func() {
		for i := count; !done.Load(); i++ {
			if createKeyed(t, first, fmt.Sprint(i)) || !createKeyed(t, first, fmt.Sprint(i)) {
				t.Errorf("create %d is a replay, or its repetition is not", i)
			}
		}
	})
	// A change that waits for others for too long is refused, and may be repeated.
	inTurn := func(change func() error) {
		err := change()
		for errors.Is(err, store.ErrUnavailable) && t.Context().Err() == nil {
			err = change()
		}
		if err != nil {
			t.Error(err)
		}
	}
	reseals.Go(func() {
		for range 3 {
			inTurn(func() error {
				_, err := second.RotateKey(t.Context())
				return err
			})
			inTurn(func() error {
				_, err := second.Reseal(t.Context(), func(int64, int64) {})
				return err
			})
		}
	})
	updated := map[int64]store.OAuth2Provider{}
	for round := range rounds {
		var changes []store.Change
		for pk := int64(1); pk <= count; pk++ {
			record, err := second.Provider(t.Context(), pk)
			processtest.Must(t, err)
			requested := record.(store.OAuth2Provider)
			requested.ClientSecret = store.NewSecret(fmt.Sprint("secret ", round, pk))
			changes = append(changes, store.Change{Planned: record, Requested: requested, Fields: []string{"client_secret"}})
			updated[pk] = requested
		}
		inTurn(func() error { return second.ChangeProviders(t.Context(), changes) })
	}
	reseals.Wait()
	done.Store(true)
	creates.Wait()
	for pk, want := range updated {
		record, err := first.Provider(t.Context(), pk)
		got, _ := record.(store.OAuth2Provider)
		// The secret may be sealed with another key.
		if got.Sealed, want.Sealed = nil, nil; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v, %v, want %+v", got, err, want)
		}
	}
	stored(t, second)
}

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
