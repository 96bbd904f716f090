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

// Another program creates a token with the id of the first run.
func TestTokenCreationIsRerun(t *testing.T) {
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

// Another operator creates an application with the id of the first run.
func TestApplicationCreationIsRerun(t *testing.T) {
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

func TestKeyRotationIsRerun(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	faulty.failNextChange(conflicting(t, func() error { return nil }))
	if _, err := opened.RotateKey(t.Context()); err != nil {
		t.Error(err)
	}
	expectEvents(t, opened, map[store.EventKind]int{store.EventKeyCreated: 1, store.EventKeyRotated: 1})
}

// The second run finds the application that another operator created, and links nothing.
func TestRerunSeesConflict(t *testing.T) {
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
	applications := storetest.Collect(t, opened.Applications(t.Context()))
	if len(applications) != 1 || applications[0].Slug != "first" || len(applications[0].Backchannels) != 1 {
		t.Errorf("applications are %+v", applications)
	}
}

// A secret that cannot be opened is left as it is, and reported once, even if the statements are run again. The
// others are sealed with the new key.
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
	execute(t, faulty.path, "UPDATE oauth2_providers SET client_secret = x'00' WHERE pk = 2")
	for _, want := range []int64{3, 1} {
		faulty.failNextChange(conflicting(t, func() error { return nil }))
		var outdated int64
		err := opened.Reseal(t.Context(), func(_, total int64) { outdated = total })
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok || len(joined.Unwrap()) != 1 || !errors.Is(err, store.ErrDamaged) ||
			!strings.Contains(err.Error(), "provider 2: client_secret") || outdated != want {
			t.Errorf("%d secrets, want %d; error is %v, want one ErrDamaged", outdated, want, err)
		}
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
