package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"example.com/providerd/store"
)

// keyed is a creation with an idempotency key.
func keyed(caller, key, body string) store.CreateRequest {
	return store.CreateRequest{
		Name: "n", CreatedBy: caller, RequestID: "request", IdempotencyKey: &key, BodyDigest: []byte(body),
	}
}

func testKeyMakesOneRecord(t *testing.T, database *store.Store) {
	settings := fullOAuth2("a")
	first, replayed, err := database.CreateOAuth2Provider(t.Context(), keyed("caller", "key", "body"), settings)
	if err != nil || replayed {
		t.Fatalf("replayed is %v, %v", replayed, err)
	}
	again, replayed, err := database.CreateOAuth2Provider(t.Context(), keyed("caller", "key", "body"), settings)
	if err != nil || !replayed || !reflect.DeepEqual(again, first) {
		t.Errorf("replayed is %v, %v: %+v, want %+v", replayed, err, again, first)
	}
	directory := fullWorkspaceDirectory()
	for try := range 2 {
		_, replayed, err := database.CreateWorkspaceDirectoryProvider(t.Context(), keyed("caller", "key", "body"), directory)
		if err != nil || replayed != (try == 1) {
			t.Errorf("try %d: replayed is %v, %v", try, replayed, err)
		}
	}
	if records := stored(t, database); len(records) != 2 {
		t.Errorf("%d records are stored, want 2", len(records))
	}
}

func testKeyScope(t *testing.T, database *store.Store) {
	for i, creation := range []store.CreateRequest{
		keyed("caller", "key", "body"), keyed("other", "key", "body"), keyed("caller", "other", "body"),
		keyed("caller", "KEY", "body"), keyed("caller", "\"key\"", "body"), creation("no key"), creation("no key"),
	} {
		_, replayed, err := database.CreateOAuth2Provider(t.Context(), creation, fullOAuth2(fmt.Sprint(i)))
		if err != nil || replayed {
			t.Errorf("%d: replayed is %v, %v", i, replayed, err)
		}
	}
}

func testKeyRefusesAnotherBody(t *testing.T, database *store.Store) {
	first, _, err := database.CreateOAuth2Provider(t.Context(), keyed("caller", "key", "body"), fullOAuth2("a"))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = database.CreateOAuth2Provider(t.Context(), keyed("caller", "key", "other"), fullOAuth2("b"))
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

func testRefusedCreateKeepsNoKey(t *testing.T, database *store.Store) {
	createOAuth2(t, database, "taken")
	_, _, err := database.CreateOAuth2Provider(t.Context(), keyed("caller", "key", "body"), fullOAuth2("taken"))
	if !errors.Is(err, store.ErrClientIDTaken) {
		t.Errorf("error is %v, want ErrClientIDTaken", err)
	}
	_, replayed, err := database.CreateOAuth2Provider(t.Context(), keyed("caller", "key", "other"), fullOAuth2("free"))
	if err != nil || replayed {
		t.Errorf("replayed is %v, %v", replayed, err)
	}
}

// testValidation asks for what would be made before and after it is made. Asking stores nothing, and uses up no pk.
func testValidation(t *testing.T, database *store.Store) {
	request, settings := keyed("caller", "key", "body"), fullOAuth2("a")
	directory := keyed("caller", "directory", "body")
	expect := func(want, wantDirectory int32) {
		t.Helper()
		for range 2 {
			if madeBefore, err := database.ValidateOAuth2Provider(t.Context(), creation("x"), fullOAuth2("free")); err != nil || madeBefore != 0 {
				t.Errorf("made before is %d, want 0, %v", madeBefore, err)
			}
			madeBefore, err := database.ValidateOAuth2Provider(t.Context(), request, settings)
			if err != nil || madeBefore != want {
				t.Errorf("made before is %d, want %d, %v", madeBefore, want, err)
			}
			madeBefore, err = database.ValidateWorkspaceDirectoryProvider(t.Context(), directory, fullWorkspaceDirectory())
			if err != nil || madeBefore != wantDirectory {
				t.Errorf("made before is %d, want %d, %v", madeBefore, wantDirectory, err)
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
		{keyed("caller", "key", "other"), "a", store.ErrKeyReused},
		{keyed("caller", "other", "body"), "a", store.ErrClientIDTaken},
		{creation("x"), "a", store.ErrClientIDTaken},
		{creation("x"), "A", nil},
	} {
		_, err := database.ValidateOAuth2Provider(t.Context(), test.request, fullOAuth2(test.clientID))
		if !errors.Is(err, test.want) {
			t.Errorf("error is %v, want %v", err, test.want)
		}
	}
	if records := stored(t, database); len(records) != 2 {
		t.Errorf("%d records are stored, want 2", len(records))
	}
}

// testConcurrentTries lets many tries with few keys meet in one batch.
func testConcurrentTries(t *testing.T, database *store.Store) {
	const keys, tries = 5, 200
	pks := make([]int32, tries)
	fresh := make([]bool, tries)
	concurrently(tries, func(i int) {
		key := fmt.Sprint(i % keys)
		record, replayed, err := database.CreateOAuth2Provider(
			t.Context(), keyed("caller", key, "body"), fullOAuth2("client "+key))
		if err != nil {
			t.Error(err)
		}
		pks[i], fresh[i] = record.PK, !replayed
	})
	made := 0
	for i := range tries {
		if fresh[i] {
			made++
		}
		if pks[i] != pks[i%keys] {
			t.Errorf("key %d gives the records %d and %d", i%keys, pks[i], pks[i%keys])
		}
	}
	if records := stored(t, database); made != keys || len(records) != keys {
		t.Errorf("%d tries made a record and %d are stored, want %d", made, len(records), keys)
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
