package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
)

// rotateAndReseal rotates the key and reseals every secret with it.
func rotateAndReseal(t *testing.T, opened *store.Store) {
	t.Helper()
	if _, err := opened.RotateKey(t.Context()); err != nil {
		t.Error(err)
	}
	reseal(t, opened)
}

func reseal(t *testing.T, opened *store.Store) {
	t.Helper()
	if err := opened.Reseal(t.Context(), func(int64, int64) {}); err != nil {
		t.Error(err)
	}
}

// expectRetired retires keys, checks their number, and then reads a provider.
func expectRetired(t *testing.T, opened *store.Store, pk int32, want int) {
	t.Helper()
	retired, err := opened.RetireKeys(t.Context())
	if err != nil || len(retired.IDs) != want {
		t.Errorf("retired %v, want %d keys, %v", retired.IDs, want, err)
	}
	if _, err := opened.Provider(t.Context(), pk); err != nil {
		t.Error(err)
	}
}

// A create or reseal that got its keys before they were retired stores nothing sealed with them.
func TestNothingIsSealedWithRetiredKeys(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	first, _, err := keyedCreate(t, opened, "first")
	if err != nil {
		t.Fatal(err)
	}
	faulty.count(func(f *faultyDatabase) {
		f.commits = []fault{func(run func(statements) error, what statements) error {
			rotateAndReseal(t, opened)
			expectRetired(t, opened, first, 1)
			return run(what)
		}}
	})
	pk, _, err := keyedCreate(t, opened, "x")
	if err != nil {
		t.Error(err)
	}
	if _, err := opened.RotateKey(t.Context()); err != nil {
		t.Error(err)
	}
	faulty.failNextChange(func(run func(statements) error, what statements) error {
		rotateAndReseal(t, opened)
		expectRetired(t, opened, pk, 2)
		return run(what)
	})
	reseal(t, opened)
	expectRetired(t, opened, pk, 0)
	expectEvents(t, opened, map[store.EventKind]int{store.EventKeyRetired: 3})
}

// A key that seals a secret is kept. The next retirement completes one that was recorded but interrupted.
func TestRetirementIsCompleted(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	pk, _, err := keyedCreate(t, opened, "x")
	if err != nil {
		t.Error(err)
	}
	if _, err := opened.RotateKey(t.Context()); err != nil {
		t.Error(err)
	}
	used, ok := errors.AsType[*store.KeysInUseError](second(opened.RetireKeys(t.Context())))
	if !ok || len(used.Uses) != 1 || used.Uses[0].Secrets != 1 || !errors.Is(used, store.ErrKeysInUse) {
		t.Errorf("error is %v, want a KeysInUseError with one secret", used)
	}
	reseal(t, opened)
	for _, failure := range []fault{rollingBack, losing(store.ErrOutcomeUnknown), failingLate(store.ErrUnavailable)} {
		faulty.failNextChange(failure)
		if _, err := opened.RetireKeys(t.Context()); err == nil {
			t.Error("retirement did not fail")
		}
	}
	expectRetired(t, opened, pk, 1)
	expectEvents(t, opened, map[store.EventKind]int{store.EventKeyRetired: 1})
}

// A record read before its secret was resealed is read again if its key has been retired.
func TestSecretOfJustRetiredKeyIsRead(t *testing.T) {
	t.Parallel()
	keyset := filepath.Join(t.TempDir(), "keyset.json")
	opened, faulty := newFaultyIn(t, t.TempDir(), keyset)
	before, asBefore := newFaultyIn(t, t.TempDir(), keyset)
	for _, s := range []*store.Store{opened, before} {
		if err := s.Submit(t.Context(), "x").Wait(); err != nil {
			t.Fatal(err)
		}
	}
	rotateAndReseal(t, opened)
	expectRetired(t, opened, 1, 1)
	// The reads are of the common row, then the row of the kind.
	faulty.elsewhere, faulty.readsElsewhere = asBefore.Database, 2
	if _, err := opened.Provider(t.Context(), 1); err != nil || faulty.readsElsewhere != 0 {
		t.Errorf("%d reads remain: %v", faulty.readsElsewhere, err)
	}
}

// The next reseal seals what an interrupted one left.
func TestNextResealCompletesInterruptedOne(t *testing.T) {
	t.Parallel()
	const count = 450
	path := filepath.Join(t.TempDir(), "test.db")
	if err := storetest.FillSQLite(t.Context(), path, count); err != nil {
		t.Fatal(err)
	}
	database := create(t, path)
	if _, err := database.RotateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := database.Reseal(ctx, func(done, _ int64) {
		if done > 0 {
			cancel()
		}
	}); !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v, want context.Canceled", err)
	}
	for _, most := range []int64{count - 1, 0} {
		left := int64(-1)
		if err := database.Reseal(t.Context(), func(_, total int64) { left = total }); err != nil || left < min(most, 1) || left > most {
			t.Errorf("%d are left, want at most %d, %v", left, most, err)
		}
	}
	if stored := names(t, database); len(stored) != count {
		t.Errorf("%d records can be read, want %d", len(stored), count)
	}
}

// Without its keyset, a store neither creates nor reads nor is ready, until the keyset is put back.
func TestKeysetIsAway(t *testing.T) {
	t.Parallel()
	keyset := filepath.Join(t.TempDir(), "keyset.json")
	opened, _ := newFaultyIn(t, t.TempDir(), keyset)
	pk, _, err := keyedCreate(t, opened, "x")
	if err := errors.Join(err, os.Rename(keyset, keyset+".away")); err != nil {
		t.Fatal(err)
	}
	_, _, createErr := keyedCreate(t, opened, "y")
	_, readErr := opened.Provider(t.Context(), pk)
	for _, err := range []error{createErr, readErr, opened.Ready(t.Context())} {
		if !errors.Is(err, store.ErrNoKeyset) || !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("error is %v, want ErrNoKeyset and ErrUnavailable", err)
		}
	}
	if err := os.Rename(keyset+".away", keyset); err != nil {
		t.Fatal(err)
	}
	if _, err := opened.Provider(t.Context(), pk); err != nil {
		t.Error(err)
	}
}

func second[First, Second any](_ First, value Second) Second { return value }
