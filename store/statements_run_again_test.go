package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"example.com/providerd/store"
)

// conflicting runs statements that are rolled back, lets others write, and runs them again, as a database does with
// transactions that conflict.
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

// A token that another program made in the meantime has the id of the first run.
func TestTokenIsCreatedAgain(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	grant := store.TokenGrant{Name: "ci", Operations: []string{"one"}, ExpiresIn: time.Hour}

	otherToken := func() error {
		_, _, err := opened.CreateToken(t.Context(), grant)
		return err
	}
	faulty.failNextChange(conflicting(t, otherToken))
	text, token, err := opened.CreateToken(t.Context(), grant)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := opened.FindToken(t.Context(), text); err != nil || found.ID != token.ID {
		t.Errorf("found %+v, %v, want %+v", found, err, token)
	}

	revocation := func() error { return opened.RevokeToken(t.Context(), token.ID) }
	faulty.failNextChange(conflicting(t, revocation))
	if err := opened.RevokeToken(t.Context(), token.ID); err != nil {
		t.Error(err)
	}
	expectEvents(t, opened, map[store.EventKind]int{store.EventTokenCreated: 2, store.EventTokenRevoked: 1})
}

// An application that another operator made in the meantime has the id of the first run.
func TestApplicationIsCreatedAgain(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	otherApplication := func() error {
		_, err := opened.CreateApplication(t.Context(), store.Application{Slug: "other"})
		return err
	}
	faulty.failNextChange(conflicting(t, otherApplication))
	application, err := opened.CreateApplication(t.Context(), store.Application{Slug: "shop"})
	if err != nil || application.ID == 0 {
		t.Errorf("created %+v, %v", application, err)
	}
}

func TestKeyIsRotatedAgain(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	faulty.failNextChange(conflicting(t, func() error { return nil }))
	if _, err := opened.RotateKey(t.Context()); err != nil {
		t.Error(err)
	}
	expectEvents(t, opened, map[store.EventKind]int{store.EventKeyCreated: 1, store.EventKeyRotated: 1})
}

// The application that another operator made in the meantime is seen, and nothing is linked.
func TestConflictIsSeenWhenStatementsAreRunAgain(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	pk, _, err := keyedCreate(t, opened, "x")
	if err != nil {
		t.Fatal(err)
	}
	links := func(slug string) store.Application {
		return store.Application{Slug: slug, ProviderPK: &pk, Backchannels: []store.Backchannel{{ProviderPK: pk}}}
	}
	faulty.failNextChange(conflicting(t, func() error {
		_, err := opened.CreateApplication(t.Context(), links("first"))
		return err
	}))
	if _, err := opened.CreateApplication(t.Context(), links("second")); !errors.Is(err, store.ErrProviderLinked) {
		t.Errorf("error is %v, want ErrProviderLinked", err)
	}
	applications, err := opened.Applications(t.Context())
	if err != nil || len(applications) != 1 || applications[0].Slug != "first" || len(applications[0].Backchannels) != 1 {
		t.Errorf("applications are %+v, %v", applications, err)
	}
}

// A secret that cannot be unsealed is told of once, however often the statements are run.
func TestResealTellsOnceOfDamage(t *testing.T) {
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
	execute(t, faulty.path, "UPDATE oauth2_providers SET client_secret = x'00' WHERE pk = 2")
	faulty.failNextChange(conflicting(t, func() error { return nil }))
	err := opened.Reseal(t.Context(), func(int64, int64) {})
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 1 || !errors.Is(err, store.ErrDamaged) {
		t.Errorf("error is %v, want one ErrDamaged", err)
	}
}
