package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
)

// conflicting runs statements, rolls them back, lets others write, and runs the statements again, as a database does
// with conflicting transactions.
func conflicting(t *testing.T, others func() error) fault {
	t.Helper()
	return func(run func(statements) error, what statements) error {
		if err := rollingBack(run, what); !errors.Is(err, errRolledBack) {
			return err
		}
		if err := others(); err != nil {
			t.Error(err)
		}
		return run(what)
	}
}

// A change that is run again keeps nothing of its first run, such as the id that another program has used since.
func TestChangesAreRerun(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	var text string
	var token store.Token
	createToken := func() (err error) {
		text, token, err = opened.CreateToken(t.Context(),
			store.TokenGrant{Name: "ci", Operations: []string{"one"}, ExpiresIn: time.Hour})
		return err
	}
	revokeToken := func() error { return opened.RevokeToken(t.Context(), token.ID) }
	var application store.Application
	createApplication := func(slug string) func() error {
		return func() (err error) {
			application, err = opened.CreateApplication(t.Context(), store.Application{Slug: slug})
			return err
		}
	}
	var key uint32
	rotate := func() (err error) { key, err = opened.RotateKey(t.Context()); return err }
	for _, step := range []struct{ change, others func() error }{
		{createToken, createToken},
		{revokeToken, revokeToken},
		{createApplication("shop"), createApplication("other")},
		{rotate, func() error { return nil }},
	} {
		faulty.failNextChange(conflicting(t, step.others))
		if err := step.change(); err != nil {
			t.Error(err)
		}
	}
	if found, err := opened.FindToken(t.Context(), text); err != nil || found.ID != token.ID {
		t.Errorf("found %+v, %v, want %+v", found, err, token)
	}
	if stored := storetest.Collect(t, opened.Applications(t.Context())); len(stored) != 2 || stored[1].ID != application.ID {
		t.Errorf("created %+v, stored %+v", application, stored)
	}
	events := storetest.Collect(t, opened.Events(t.Context(), store.Filter{}, store.EventCursor{}))
	if last := events[len(events)-1]; last.Event != store.EventKeyRotated || last.ID != int64(key) {
		t.Errorf("the last event is %+v, want that of key %d", last, key)
	}
	expectEvents(t, opened, map[store.EventKind]int{
		store.EventTokenCreated: 2, store.EventTokenRevoked: 1, store.EventKeyCreated: 1, store.EventKeyRotated: 1,
	})
}

// A secret that cannot be opened is left as it is, and reported once, even if the statements are run again. The others
// are sealed with the new key. The key that sealed the damaged one is kept until that is deleted.
func TestResealSkipsDamagedSecrets(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	for i := range 3 {
		if err := opened.Submit(t.Context(), fmt.Sprint(i)).Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := opened.RotateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	execute(t, faulty.path, `UPDATE oauth2_providers SET client_secret =
		(SELECT client_secret FROM oauth2_providers WHERE pk = 3) WHERE pk = 2`)
	for _, want := range []int64{3, 1} {
		faulty.count(func(f *faultyDatabase) {
			f.changes = []fault{passing, conflicting(t, func() error { return nil })}
		})
		var outdated int64
		removed, err := opened.Reseal(t.Context(), func(_, total int64) { outdated = total })
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok || len(joined.Unwrap()) != 1 || !errors.Is(err, store.ErrDamaged) ||
			!strings.Contains(err.Error(), "provider 2: client_secret") || outdated != want || removed != 0 {
			t.Errorf("%d secrets, want %d; removed %d keys; error is %v, want one ErrDamaged", outdated, want, removed, err)
		}
	}
	if err := opened.DeleteProviders(t.Context(), []int32{2}, "operator"); err != nil {
		t.Fatal(err)
	}
	if removed, err := opened.Reseal(t.Context(), func(int64, int64) {}); err != nil || removed != 1 {
		t.Errorf("removed %d keys, want 1, %v", removed, err)
	}
}

// A second run of a batch keeps nothing of the first: neither the lack of pks, nor that a key and a client_id were
// free, which another program has since taken.
func TestBatchIsRerun(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	other := create(t, faulty.path)
	var first int32
	again := func(run func(statements) error, what statements) error {
		faulty.count(func(f *faultyDatabase) { f.maxPKs = 4 })
		defer faulty.count(func(f *faultyDatabase) { f.maxPKs = 0 })
		return conflicting(t, func() (err error) {
			faulty.count(func(f *faultyDatabase) { f.maxPKs = 0 })
			first, _, err = keyedCreate(t, other, "key")
			return errors.Join(err, other.Submit(t.Context(), "taken").Wait())
		})(run, what)
	}
	errs := faulty.inOneQueue(t, opened, 10, func(i int) error {
		switch i {
		case 0:
			pk, replayed, err := keyedCreate(t, opened, "key")
			if pk != first || !replayed {
				t.Errorf("replayed is %v: %d, want %d", replayed, pk, first)
			}
			return err
		case 1:
			return opened.Submit(t.Context(), "taken").Wait()
		default:
			return opened.Submit(t.Context(), fmt.Sprint(i)).Wait()
		}
	}, again)
	for i, err := range errs {
		if isTaken := errors.Is(err, store.ErrClientIDTaken); isTaken != (i == 1) || !isTaken && err != nil {
			t.Errorf("create %d: %v", i, err)
		}
	}
	if stored := names(t, opened); len(stored) != 11 {
		t.Errorf("names are %v", stored)
	}
}

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
		"before": {failing(store.ErrUnavailable), store.ErrUnavailable, 0},
		"during": {failingLate(store.ErrUnavailable), store.ErrUnavailable, 0},
		"after":  {losing(store.ErrOutcomeUnknown), store.ErrOutcomeUnknown, 1},
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
