package store_test

import (
	"errors"
	"path/filepath"
	"testing"

	"example.com/providerd/store"
)

// A replay fails if its pk has no record, or that of another key: an old primary that still runs may have given the
// pk to another create.
func TestReplayIsTheRecordOfItsKey(t *testing.T) {
	t.Parallel()
	keyset := filepath.Join(t.TempDir(), "keyset.json")
	opened, faulty := newFaultyIn(t, t.TempDir(), keyset)
	other, elsewhere := newFaultyIn(t, t.TempDir(), keyset)
	first, _, err := keyedCreate(t, opened, "first")
	if err != nil {
		t.Fatal(err)
	}
	faulty.elsewhere = elsewhere.Database
	if _, _, err := keyedCreate(t, opened, "first"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("no record: error is %v, want ErrUnavailable", err)
	}
	if pk, _, err := keyedCreate(t, other, "other"); err != nil || pk != first {
		t.Fatalf("pk is %d, want %d, %v", pk, first, err)
	}
	if _, _, err := keyedCreate(t, opened, "first"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("another's record: error is %v, want ErrUnavailable", err)
	}
	request := store.CreateRequest{
		Name: "x", CreatedBy: "caller", IdempotencyKey: new("first"), BodyDigest: []byte("x"), ValidateOnly: true,
	}
	_, _, err = opened.CreateOAuth2Provider(t.Context(), request, store.OAuth2Settings{ClientID: "first"})
	reused, ok := errors.AsType[*store.KeyReusedError](err)
	if !ok || reused.PK != first {
		t.Fatalf("error is %v, want ErrKeyReused with provider %d", err, first)
	}
	if _, err := opened.PriorRecord(t.Context(), reused); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("another's record: error is %v, want ErrUnavailable", err)
	}
	faulty.elsewhere = nil
	if pk, replayed, err := keyedCreate(t, opened, "first"); err != nil || !replayed || pk != first {
		t.Errorf("pk is %d, replayed is %v, %v", pk, replayed, err)
	}
}
