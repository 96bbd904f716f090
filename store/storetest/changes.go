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
