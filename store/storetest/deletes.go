package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"example.com/providerd/store"
)

func testDeletedProviders(t *testing.T, database *store.Store) {
	oauth2, directory, left := createOAuth2(t, database, "a"), createWorkspaceDirectory(t, database), createOAuth2(t, database, "b")
	linked := createOAuth2(t, database, "linked")
	backchannels := []store.Backchannel{{ProviderPK: linked.PK}}
	_, err := database.CreateApplication(t.Context(),
		store.Application{Slug: "shop", ProviderPK: &linked.PK, Backchannels: backchannels})
	if err != nil {
		t.Fatal(err)
	}
	missing := linked.PK + 100
	err = database.DeleteProviders(t.Context(), []int64{oauth2.PK, missing, linked.PK})
	if !errors.Is(err, store.ErrNotFound) || !errors.Is(err, store.ErrProviderInUse) ||
		strings.Count(err.Error(), fmt.Sprintf("provider %d: provider is linked to an application: shop", linked.PK)) != 2 {
		t.Errorf("error is %v, want one for each link and the missing one", err)
	}
	if records := stored(t, database); len(records) != 4 {
		t.Errorf("a refused deletion leaves %d records, want 4", len(records))
	}
	deletable, err := database.Deletable(t.Context(), []int64{left.PK, oauth2.PK, left.PK})
	if err != nil || len(deletable) != 2 || deletable[0].PK != oauth2.PK || deletable[1].PK != left.PK {
		t.Errorf("deletable are %+v, %v", deletable, err)
	}
	if err := database.DeleteProviders(t.Context(), []int64{directory.PK, oauth2.PK, directory.PK}); err != nil {
		t.Error(err)
	}
	for _, pk := range []int64{oauth2.PK, directory.PK} {
		if _, err := database.Provider(t.Context(), pk); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a deleted provider: %v, want ErrNotFound", err)
		}
	}
	expectRecord(t, database, left)
	if again := createOAuth2(t, database, "a"); again.PK <= linked.PK {
		t.Errorf("pk %d was assigned before", again.PK)
	}
}

func testKeyOfDeletedProvider(t *testing.T, database *store.Store) {
	first, _, err := database.CreateOAuth2Provider(t.Context(), keyed("key", "body"), FullOAuth2("a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := database.DeleteProviders(t.Context(), []int64{first.PK}); err != nil {
		t.Fatal(err)
	}
	again, replayed, err := database.CreateOAuth2Provider(t.Context(), keyed("key", "other"), FullOAuth2("a"))
	if err != nil || replayed || again.PK <= first.PK {
		t.Errorf("replayed is %v, %v, pk %d after %d", replayed, err, again.PK, first.PK)
	}
}

// testDeletedInEvents expects the creation and the deletion on any page of the events.
func testDeletedInEvents(t *testing.T, database *store.Store) {
	const count = 1100
	concurrently(count, func(i int) {
		if _, _, err := database.CreateOAuth2Provider(t.Context(), keyed(fmt.Sprint(i), "x"), FullOAuth2(fmt.Sprint(i))); err != nil {
			t.Error(err)
		}
	})
	before := Collect(t, database.Events(t.Context(), store.EventFilter{Kind: store.KindOAuth2}, 0))
	var pks []int64
	for i, record := range stored(t, database) {
		if i%2 == 0 {
			pks = append(pks, record.Common().PK)
		}
	}
	if err := database.DeleteProviders(t.Context(), pks); err != nil {
		t.Fatal(err)
	}
	after := Collect(t, database.Events(t.Context(), store.EventFilter{Kind: store.KindOAuth2}, 0))
	if len(after) != count+len(pks) || !sameEvents(after[:count], before) {
		t.Fatalf("%d events, want the previous ones and %d", len(after), len(pks))
	}
	for i, event := range after[count:] {
		if event.Event != store.EventProviderDeleted || event.Subject != pks[i] ||
			event.Kind != store.KindOAuth2 || event.Caller != "" || event.RequestID != "" {
			t.Errorf("event is %+v", event)
		}
	}
}

// testCreatesDuringDeletes has one store create with few keys and client_ids, and read, while the other deletes what it
// finds. No reader mistakes a provider that is being deleted for a damaged one.
func testCreatesDuringDeletes(t *testing.T, first, second *store.Store) {
	const count = 600
	done := make(chan struct{})
	go func() {
		defer close(done)
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
	}()
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
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
		select {
		case <-done:
			isDone = true
		default:
		}
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
	readers.Wait()
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
