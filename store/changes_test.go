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
		faulty.failNextWrite(conflicting(t, step.others))
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
	events := storetest.Collect(t, opened.Events(t.Context(), store.EventFilter{}, 0))
	if last := events[len(events)-1]; last.Event != store.EventKeyRotated || last.Subject != int64(key) {
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
		if err := add(t.Context(), opened, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := opened.RotateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	execute(t, faulty.path, "UPDATE providers SET secret = (SELECT secret FROM providers WHERE pk = 3) WHERE pk = 2")
	for _, want := range []int64{3, 1} {
		faulty.count(func(f *faultyDatabase) {
			f.writes = []fault{passing, conflicting(t, func() error { return nil })}
		})
		var outdated int64
		removed, err := opened.Reseal(t.Context(), func(_, total int64) { outdated = total })
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok || len(joined.Unwrap()) != 1 || !errors.Is(err, store.ErrDamaged) ||
			!strings.Contains(err.Error(), "provider 2: secret") || outdated != want || removed != 0 {
			t.Errorf("%d secrets, want %d; removed %d keys; error is %v, want one ErrDamaged", outdated, want, removed, err)
		}
	}
	if err := opened.DeleteProviders(t.Context(), []int64{2}); err != nil {
		t.Fatal(err)
	}
	if removed, err := opened.Reseal(t.Context(), func(int64, int64) {}); err != nil || removed != 1 {
		t.Errorf("removed %d keys, want 1, %v", removed, err)
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
		faulty.failNextWrite(test.fault)
		text, _, err := opened.CreateToken(t.Context(), grant)
		if !errors.Is(err, test.want) || text != "" {
			t.Errorf("%s: error is %v, want %v", name, err, test.want)
		}
		if tokens := storetest.Collect(t, opened.Tokens(t.Context())); len(tokens) != test.tokens {
			t.Errorf("%s: tokens are %+v, want %d", name, tokens, test.tokens)
		}
	}
}
