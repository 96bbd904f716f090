package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/uuid"

	"example.com/providerd/store"
)

func testProvidersAreStoredAsGiven(t *testing.T, database *store.Store) {
	oauth2 := fullOAuth2("shop")
	created, _, err := database.CreateOAuth2Provider(t.Context(), creation("Shop"), oauth2)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(created.OAuth2Settings, oauth2) {
		t.Errorf("created %+v, want %+v", created.OAuth2Settings, oauth2)
	}
	if created.Name != "Shop" || created.CreatedBy != "caller" || created.RequestID != "request" ||
		created.Kind != store.KindOAuth2 || created.CreatedAt.IsZero() {
		t.Errorf("common row is %+v", created.Provider)
	}
	read, err := database.Provider(t.Context(), created.PK)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, store.Record(created)) {
		t.Errorf("read %+v, want %+v", read, created)
	}
	byClientID, err := database.ProviderByClientID(t.Context(), "shop")
	if err != nil || !reflect.DeepEqual(byClientID, read) {
		t.Errorf("by client_id: %+v, %v, want %+v", byClientID, err, read)
	}

	directory := createWorkspaceDirectory(t, database)
	readDirectory, err := database.Provider(t.Context(), directory.PK)
	if err != nil || !reflect.DeepEqual(readDirectory, store.Record(directory)) {
		t.Errorf("read %+v, %v, want %+v", readDirectory, err, directory)
	}
}

func testUnsetValuesStayUnset(t *testing.T, database *store.Store) {
	settings := store.OAuth2Settings{
		ClientID: "a", PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{},
	}
	created, _, err := database.CreateOAuth2Provider(t.Context(), creation("a"), settings)
	if err != nil {
		t.Fatal(err)
	}
	read, err := database.Provider(t.Context(), created.PK)
	if err != nil {
		t.Fatal(err)
	}
	provider, ok := read.(store.OAuth2Provider)
	if !ok || !reflect.DeepEqual(provider.OAuth2Settings, settings) {
		t.Errorf("read %+v, want %+v", read, settings)
	}
}

func testPKIsOneSequence(t *testing.T, database *store.Store) {
	last := int32(0)
	for i := range 4 {
		var pk int32
		if i%2 == 0 {
			pk = createOAuth2(t, database, fmt.Sprint(i)).PK
		} else {
			pk = createWorkspaceDirectory(t, database).PK
		}
		if pk <= last {
			t.Errorf("pk %d follows %d", pk, last)
		}
		last = pk
	}
}

func testClientIDIsUnique(t *testing.T, database *store.Store) {
	createOAuth2(t, database, "taken")
	_, _, err := database.CreateOAuth2Provider(t.Context(), creation("second"), fullOAuth2("taken"))
	if !errors.Is(err, store.ErrClientIDTaken) {
		t.Errorf("error is %v, want ErrClientIDTaken", err)
	}
	if records := stored(t, database); len(records) != 1 {
		t.Errorf("%d records are stored, want 1", len(records))
	}
	createOAuth2(t, database, "free")
}

func testClientIDTellsCaseApart(t *testing.T, database *store.Store) {
	createOAuth2(t, database, "case")
	upper := createOAuth2(t, database, "CASE")
	found, err := database.ProviderByClientID(t.Context(), "CASE")
	if err != nil || found.Common().PK != upper.PK {
		t.Errorf("found %+v, %v, want pk %d", found, err, upper.PK)
	}
}

func testNameIsNotUnique(t *testing.T, database *store.Store) {
	createOAuth2(t, database, "a")
	createOAuth2(t, database, "b")
}

func testProvidersAreReadInOrder(t *testing.T, database *store.Store) {
	// More than two pages of any sensible size, so that the seams between pages are seen.
	const count = 1203
	concurrently(count, func(i int) {
		if i%3 == 0 {
			createWorkspaceDirectory(t, database)
		} else {
			createOAuth2(t, database, fmt.Sprint(i))
		}
	})
	records := stored(t, database)
	if len(records) != count {
		t.Fatalf("%d records are read, want %d", len(records), count)
	}
	for i, record := range records[1:] {
		if record.Common().PK <= records[i].Common().PK {
			t.Fatalf("pk %d follows %d", record.Common().PK, records[i].Common().PK)
		}
	}
}

func testMissingProvider(t *testing.T, database *store.Store) {
	if _, err := database.Provider(t.Context(), 1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("by pk: %v, want ErrNotFound", err)
	}
	if _, err := database.ProviderByClientID(t.Context(), "x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("by client_id: %v, want ErrNotFound", err)
	}
	if records := stored(t, database); len(records) != 0 {
		t.Errorf("an empty database has %d records", len(records))
	}
}

func testCanceledCreate(t *testing.T, database *store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := database.CreateOAuth2Provider(ctx, creation("x"), fullOAuth2("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want context.Canceled", err)
	}
	if records := stored(t, database); len(records) != 0 {
		t.Errorf("%d records are stored, want none", len(records))
	}
	createOAuth2(t, database, "x")
}

func testConcurrentCreates(t *testing.T, database *store.Store) {
	const count = 200
	pks := make([]int32, count)
	concurrently(count, func(i int) {
		if i%2 == 0 {
			pks[i] = createOAuth2(t, database, fmt.Sprint(i)).PK
		} else {
			pks[i] = createWorkspaceDirectory(t, database).PK
		}
	})
	seen := map[int32]bool{}
	for _, record := range stored(t, database) {
		seen[record.Common().PK] = true
	}
	for _, pk := range pks {
		if !seen[pk] {
			t.Errorf("pk %d is not stored", pk)
		}
	}
	if len(seen) != count {
		t.Errorf("%d different records are stored, want %d", len(seen), count)
	}
}

func testConcurrentClaims(t *testing.T, database *store.Store) {
	const count = 50
	errs := make([]error, count)
	concurrently(count, func(i int) {
		_, _, errs[i] = database.CreateOAuth2Provider(t.Context(), creation("x"), fullOAuth2("same"))
	})
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, store.ErrClientIDTaken):
			t.Errorf("error is %v, want ErrClientIDTaken", err)
		}
	}
	if records := stored(t, database); won != 1 || len(records) != 1 {
		t.Errorf("%d creates won and %d records are stored, want 1 and 1", won, len(records))
	}
}

// expectRecord reads a record, which must be as it was when it was created.
func expectRecord(t *testing.T, database *store.Store, want store.Record) {
	t.Helper()
	record, err := database.Provider(t.Context(), want.Common().PK)
	if err != nil || !reflect.DeepEqual(record, want) {
		t.Errorf("read %+v, %v, want %+v", record, err, want)
	}
}
