package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"example.com/providerd/store"
)

// keyed is a creation with an idempotency key.
func keyed(key, body string) store.CreateRequest {
	return store.CreateRequest{
		Name: "n", CreatedBy: "caller", RequestID: "request", IdempotencyKey: &key, BodyDigest: []byte(body),
	}
}

func testKeyRefusesAnotherBody(t *testing.T, database *store.Store) {
	first, _, err := database.CreateOAuth2Provider(t.Context(), keyed("key", "body"), fullOAuth2("a"))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = database.CreateOAuth2Provider(t.Context(), keyed("key", "other"), fullOAuth2("b"))
	reused, ok := errors.AsType[*store.KeyReusedError](err)
	if !ok || !errors.Is(err, store.ErrKeyReused) || reused.PK != first.PK {
		t.Fatalf("error is %v, want ErrKeyReused with provider %d", err, first.PK)
	}
	if record, err := database.MadeBefore(t.Context(), reused); err != nil || !reflect.DeepEqual(record, store.Record(first)) {
		t.Errorf("the key made %+v, %v, want %+v", record, err, first)
	}
	if records := stored(t, database); len(records) != 1 {
		t.Errorf("%d records are stored, want 1", len(records))
	}
}

// validation is a request of which nothing is stored.
func validation(request store.CreateRequest) store.CreateRequest {
	request.ValidateOnly = true
	return request
}

// testValidation asks for what would be made before and after it is made. Asking stores nothing, and uses up no pk.
func testValidation(t *testing.T, database *store.Store) {
	request, settings := keyed("key", "body"), fullOAuth2("a")
	directory := keyed("directory", "body")
	expect := func(want, wantDirectory int32) {
		t.Helper()
		for range 2 {
			record, _, err := database.CreateOAuth2Provider(t.Context(), validation(creation("x")), fullOAuth2("free"))
			if err != nil || record.PK != 0 {
				t.Errorf("made before is %d, want 0, %v", record.PK, err)
			}
			record, replayed, err := database.CreateOAuth2Provider(t.Context(), validation(request), settings)
			if err != nil || record.PK != want || replayed != (want != 0) {
				t.Errorf("made before is %d, want %d, %v", record.PK, want, err)
			}
			other, replayed, err := database.CreateWorkspaceDirectoryProvider(t.Context(), validation(directory), fullWorkspaceDirectory())
			if err != nil || other.PK != wantDirectory || replayed != (wantDirectory != 0) {
				t.Errorf("made before is %d, want %d, %v", other.PK, wantDirectory, err)
			}
		}
	}
	expect(0, 0)
	first, _, err := database.CreateOAuth2Provider(t.Context(), request, settings)
	if err != nil {
		t.Fatal(err)
	}
	expect(first.PK, 0)
	second, replayed, err := database.CreateWorkspaceDirectoryProvider(t.Context(), directory, fullWorkspaceDirectory())
	if err != nil || replayed {
		t.Fatalf("replayed is %v, %v", replayed, err)
	}
	expect(first.PK, second.PK)
	if first.PK != 1 || second.PK != 2 {
		t.Errorf("the pks are %d and %d, want 1 and 2", first.PK, second.PK)
	}
	for _, test := range []struct {
		request  store.CreateRequest
		clientID string
		want     error
	}{
		{keyed("key", "other"), "a", store.ErrKeyReused},
		{keyed("other", "body"), "a", store.ErrClientIDTaken},
		{creation("x"), "a", store.ErrClientIDTaken},
		{creation("x"), "A", nil},
	} {
		_, _, err := database.CreateOAuth2Provider(t.Context(), validation(test.request), fullOAuth2(test.clientID))
		if !errors.Is(err, test.want) {
			t.Errorf("error is %v, want %v", err, test.want)
		}
	}
	if records := stored(t, database); len(records) != 2 {
		t.Errorf("%d records are stored, want 2", len(records))
	}
}

// testFailingRows lets creates that fail and creates that do not meet in one batch.
func testFailingRows(t *testing.T, database *store.Store) {
	createOAuth2(t, database, "taken")
	const count = 300
	concurrently(count, func(i int) {
		clientID := fmt.Sprint(i)
		if i%3 == 0 {
			clientID = "taken"
		}
		_, _, err := database.CreateOAuth2Provider(t.Context(), creation("x"), fullOAuth2(clientID))
		if taken := errors.Is(err, store.ErrClientIDTaken); taken != (i%3 == 0) || !taken && err != nil {
			t.Errorf("create %d: %v", i, err)
		}
	})
	if records := stored(t, database); len(records) != 1+count*2/3 {
		t.Errorf("%d records are stored, want %d", len(records), 1+count*2/3)
	}
}
