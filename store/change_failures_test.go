package store_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
)

// TestFailedChange checks that a change that fails before or in its commit leaves nothing, and that one with a lost
// response is stored.
func TestFailedChange(t *testing.T) {
	t.Parallel()
	grant := store.TokenGrant{Name: "ci", Operations: []string{"one"}, ExpiresIn: time.Hour}
	for name, test := range map[string]struct {
		fault  fault
		want   error
		tokens int
	}{
		"before": {func(func(statements) error, statements) error { return store.ErrUnavailable }, store.ErrUnavailable, 0},
		"during": {func(run func(statements) error, what statements) error {
			return run(func(tx *gorm.DB) error { return errors.Join(what(tx), store.ErrUnavailable) })
		}, store.ErrUnavailable, 0},
		"after": {func(run func(statements) error, what statements) error {
			return errors.Join(run(what), store.ErrOutcomeUnknown)
		}, store.ErrOutcomeUnknown, 1},
	} {
		opened, faulty := newFaulty(t)
		faulty.failNextChange(test.fault)
		text, _, err := opened.CreateToken(t.Context(), grant)
		if !errors.Is(err, test.want) || text != "" {
			t.Errorf("%s: error is %v, want %v", name, err, test.want)
		}
		if tokens := storetest.Collect(t, opened.Tokens(t.Context())); len(tokens) != test.tokens {
			t.Errorf("%s: tokens are %+v, want %d", name, tokens, test.tokens)
		}
	}
}

// A key is in the keyset file before its event is committed, so that no event refers to a key that does not exist.
// Secrets are sealed with the key even if the commit fails.
func TestRotationWithFailedCommit(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	before, _, err := keyedCreate(t, opened, "before")
	if err != nil {
		t.Fatal(err)
	}
	faulty.failNextChange(func(run func(statements) error, what statements) error {
		return run(func(tx *gorm.DB) error { return errors.Join(what(tx), store.ErrUnavailable) })
	})
	if _, err := opened.RotateKey(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("error is %v, want ErrUnavailable", err)
	}
	expectEvents(t, opened, map[store.EventKind]int{store.EventKeyRotated: 0})
	after, _, err := keyedCreate(t, opened, "after")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.RotateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectEvents(t, opened, map[store.EventKind]int{store.EventKeyRotated: 1})
	if err := opened.Reseal(t.Context(), func(int64, int64) {}); err != nil {
		t.Error(err)
	}
	for _, pk := range []int32{before, after} {
		if _, err := opened.Provider(t.Context(), pk); err != nil {
			t.Error(err)
		}
	}
}
