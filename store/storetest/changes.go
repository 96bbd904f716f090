package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest/processtest"
)

// createKeyed creates an OAuth2 provider with an idempotency key.
func createKeyed(t *testing.T, database *store.Store, key, clientID string) store.OAuth2Provider {
	t.Helper()
	record, _, err := database.CreateOAuth2Provider(t.Context(), keyed(key, key), FullOAuth2(clientID))
	processtest.Must(t, err)
	return record
}

// expectSettings expects a record, whatever its secret is sealed with.
func expectSettings(t *testing.T, database *store.Store, want store.Record) {
	t.Helper()
	record, err := database.Provider(t.Context(), want.Common().PK)
	processtest.Must(t, err)
	if record, want := withoutSeal(record), withoutSeal(want); !reflect.DeepEqual(record, want) {
		t.Errorf("read %+v, want %+v", record, want)
	}
}

// testUpdatesDuringCreates has the second store update records, rotate keys and reseal while the first creates and
// replays. Each acknowledged update must be stored, and no create or replay may fail.
func testUpdatesDuringCreates(t *testing.T, first, second *store.Store) {
	const count, rounds = 60, 4
	for i := range count {
		createKeyed(t, first, fmt.Sprint(i), fmt.Sprint(i))
	}
	var creates, reseals sync.WaitGroup
	done := make(chan struct{})
	creates.Go(func() {
		for i := count; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			createKeyed(t, first, fmt.Sprint(i), fmt.Sprint(i))
			_, replayed, err := first.CreateOAuth2Provider(t.Context(), keyed(fmt.Sprint(i), fmt.Sprint(i)), FullOAuth2(fmt.Sprint(i)))
			if err != nil || !replayed {
				t.Errorf("replayed is %v, %v", replayed, err)
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
	close(done)
	creates.Wait()
	for _, want := range updated {
		expectSettings(t, first, want)
	}
	stored(t, second)
}

func withoutSeal(record store.Record) store.Record {
	switch record := record.(type) {
	case store.OAuth2Provider:
		record.Sealed = nil
		return record
	case store.WorkspaceDirectoryProvider:
		record.Sealed = nil
		return record
	default:
		return record
	}
}
