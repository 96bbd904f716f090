package storetest

import (
	"errors"
	"fmt"
	"os/user"
	"reflect"
	"slices"
	"sync"
	"testing"

	"example.com/providerd/store"
)

// createKeyed creates an OAuth2 provider with an idempotency key.
func createKeyed(t *testing.T, database *store.Store, key, clientID string) store.OAuth2Provider {
	t.Helper()
	record, _, err := database.CreateOAuth2Provider(t.Context(), keyed(key, key), FullOAuth2(clientID))
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func withClientID(record store.OAuth2Provider, clientID string) store.Change {
	requested := record
	requested.ClientID = clientID
	return store.Change{Planned: record, Requested: requested, Fields: []string{"client_id"}}
}

// testChanges swaps two client_ids, replaces all settings, renames, and deletes in one transaction.
func testChanges(t *testing.T, database *store.Store) {
	a, b, c := createKeyed(t, database, "a", "a"), createKeyed(t, database, "b", "b"), createKeyed(t, database, "c", "c")
	directory := createWorkspaceDirectory(t, database)
	changed := directory
	changed.Name, changed.WorkspaceDirectorySettings = "changed", FullWorkspaceDirectory()
	changed.Credentials = store.NewSecret(`{"b":2}`)
	rename := withClientID(b, "a")
	renamed, key := rename.Requested.(store.OAuth2Provider), "renamed"
	renamed.IdempotencyKey, renamed.ClientSecret = &key, store.NewSecret("new")
	rename.Requested = renamed
	err := database.ChangeProviders(t.Context(), []store.Change{
		withClientID(a, "c"), rename,
		{Planned: c},
		{Planned: directory, Requested: changed, Fields: []string{"name", "credentials"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	expectSettings(t, database, withClientID(a, "c").Requested)
	expectSettings(t, database, renamed)
	expectSettings(t, database, changed)
	if _, err := database.Provider(t.Context(), c.PK); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the deleted provider: %v, want ErrNotFound", err)
	}
	if _, _, err := database.CreateOAuth2Provider(t.Context(), keyed("a", "a"), a.OAuth2Settings); !errors.Is(err, store.ErrKeyReused) {
		t.Errorf("a retry with the old body: %v, want ErrKeyReused", err)
	}
	for key, changed := range map[string]store.Record{"a": withClientID(a, "c").Requested, "renamed": renamed} {
		request := keyed(key, changed.Common().Name)
		settings := changed.(store.OAuth2Provider).OAuth2Settings
		if _, replayed, err := database.CreateOAuth2Provider(t.Context(), request, settings); err != nil || !replayed {
			t.Errorf("a retry with the new values of %s: replayed is %v, %v", key, replayed, err)
		}
	}
	expectChangeEvents(t, database, []store.Event{
		{Event: store.EventProviderDeleted, Subject: c.PK},
		{Event: store.EventProviderUpdated, Subject: a.PK, Fields: store.FieldNames{"client_id"}},
		{Event: store.EventProviderRenamed, Subject: b.PK},
		{Event: store.EventProviderUpdated, Subject: b.PK, Fields: store.FieldNames{"client_id"}},
		{Event: store.EventProviderUpdated, Subject: directory.PK, Fields: store.FieldNames{"name", "credentials"}},
	})
}

// expectSettings expects a record, whatever its secret is sealed with.
func expectSettings(t *testing.T, database *store.Store, want store.Record) {
	t.Helper()
	record, err := database.Provider(t.Context(), want.Common().PK)
	if err != nil {
		t.Fatal(err)
	}
	if record, want := withoutSeal(record), withoutSeal(want); !reflect.DeepEqual(record, want) {
		t.Errorf("read %+v, want %+v", record, want)
	}
}

// expectChangeEvents expects these events of changes, each with the user and the kind of its provider.
func expectChangeEvents(t *testing.T, database *store.Store, want []store.Event) {
	t.Helper()
	var got []store.Event
	for _, event := range readEvents(t, database) {
		isChange := slices.Contains([]store.EventKind{
			store.EventProviderUpdated, store.EventProviderRenamed, store.EventProviderDeleted,
		}, event.Event)
		if !isChange {
			continue
		}
		if event.Kind == "" || event.OSUser != operator(t) {
			t.Errorf("event is %+v", event)
		}
		got = append(got, store.Event{Event: event.Event, Subject: event.Subject, Fields: event.Fields})
	}
	if !sameEvents(got, want) {
		t.Errorf("events are %+v, want %+v", got, want)
	}
}

// operator returns the name of the user who runs the tests.
func operator(t *testing.T) string {
	t.Helper()
	current, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return current.Username
}

// testRefusedChanges expects that one refused change refuses all.
func testRefusedChanges(t *testing.T, database *store.Store) {
	a, b := createKeyed(t, database, "a", "a"), createKeyed(t, database, "b", "b")
	directory := createWorkspaceDirectory(t, database)
	_, err := database.CreateApplication(t.Context(), store.Application{Slug: "shop", ProviderPK: &b.PK})
	if err != nil {
		t.Fatal(err)
	}
	stale, gone := a, a
	stale.Name, gone.PK = "stale", directory.PK+1
	keyTaken := a
	keyTaken.IdempotencyKey = b.IdempotencyKey
	for name, refused := range map[string]struct {
		change store.Change
		want   error
	}{
		"changed":   {withClientID(stale, "new"), store.ErrChanged},
		"deleted":   {withClientID(gone, "new"), store.ErrChanged},
		"client_id": {withClientID(a, "b"), store.ErrClientIDTaken},
		"key":       {store.Change{Planned: a, Requested: keyTaken}, store.ErrKeyTaken},
		"linked":    {store.Change{Planned: b}, store.ErrProviderInUse},
	} {
		changed := directory
		changed.Name = "changed"
		changes := []store.Change{{Planned: directory, Requested: changed, Fields: []string{"name"}}, refused.change}
		if err := database.ChangeProviders(t.Context(), changes); !errors.Is(err, refused.want) {
			t.Errorf("%s: error is %v, want %v", name, err, refused.want)
		}
		expectRecord(t, database, a)
		expectRecord(t, database, directory)
	}
	expectChangeEvents(t, database, nil)
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
			if err != nil {
				t.Fatal(err)
			}
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
