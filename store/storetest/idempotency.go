package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"example.com/providerd/store"
)

// keyed returns a creation with an idempotency key.
func keyed(key, name string) store.CreateRequest {
	return store.CreateRequest{Name: name, CreatedBy: "caller", RequestID: "request", IdempotencyKey: &key}
}

func testKeyRefusesAnotherBody(t *testing.T, database *store.Store) {
	first, _, err := database.CreateOAuth2Provider(t.Context(), keyed("key", "body"), FullOAuth2("a"))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = database.CreateOAuth2Provider(t.Context(), keyed("key", "other"), FullOAuth2("b"))
	reused, ok := errors.AsType[*store.KeyReusedError](err)
	if !ok || !errors.Is(err, store.ErrKeyReused) || reused.PK != first.PK {
		t.Fatalf("error is %v, want ErrKeyReused with provider %d", err, first.PK)
	}
	if want := []string{"name", "client_id"}; !slices.Equal(reused.Fields, want) {
		t.Errorf("%v differ, want %v", reused.Fields, want)
	}
	if records := stored(t, database); len(records) != 1 {
		t.Errorf("%d records are stored, want 1", len(records))
	}
}

// testValidation validates twice, which stores nothing and uses no pk. The model of creates covers the outcome.
func testValidation(t *testing.T, database *store.Store) {
	request := keyed("key", "body")
	request.ValidateOnly = true
	for range 2 {
		_, _, err := database.CreateOAuth2Provider(t.Context(), request, FullOAuth2("a"))
		_, _, directoryErr := database.CreateWorkspaceDirectoryProvider(t.Context(), request, FullWorkspaceDirectory())
		if err := errors.Join(err, directoryErr); err != nil {
			t.Error(err)
		}
	}
	if records := stored(t, database); len(records) != 0 {
		t.Errorf("%d records are stored, want none", len(records))
	}
	if first := createOAuth2(t, database, "a"); first.PK != 1 {
		t.Errorf("the first pk is %d, want 1", first.PK)
	}
}

// testFailingRows runs creates that fail and creates that succeed in the same batches.
func testFailingRows(t *testing.T, database *store.Store) {
	createOAuth2(t, database, "taken")
	const count = 300
	concurrently(count, func(i int) {
		clientID := fmt.Sprint(i)
		if i%3 == 0 {
			clientID = "taken"
		}
		_, _, err := database.CreateOAuth2Provider(t.Context(), creation("x"), FullOAuth2(clientID))
		if taken := errors.Is(err, store.ErrClientIDTaken); taken != (i%3 == 0) || !taken && err != nil {
			t.Errorf("create %d: %v", i, err)
		}
	})
	if records := stored(t, database); len(records) != 1+count*2/3 {
		t.Errorf("%d records are stored, want %d", len(records), 1+count*2/3)
	}
}
