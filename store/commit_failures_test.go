package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/providerd/store"
)

// keyedCreate makes a provider with a key and a client_id of this name.
func keyedCreate(t *testing.T, opened *store.Store, name string) (pk int32, replayed bool, err error) {
	t.Helper()
	record, replayed, err := opened.CreateOAuth2Provider(t.Context(), store.CreateRequest{
		Name: name, CreatedBy: "caller", IdempotencyKey: &name, BodyDigest: []byte(name),
	}, store.OAuth2Settings{ClientID: name, PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{}})
	return record.PK, replayed, err
}

// Whatever becomes of a commit, all callers of the batch learn it, a retry of each settles it, and nothing is there
// twice.
func TestFailedCommit(t *testing.T) {
	t.Parallel()
	away := fmt.Errorf("%w: the disk is away", store.ErrUnavailable)
	lost := fmt.Errorf("%w: the answer is lost", store.ErrOutcomeUnknown)
	unheardOf := errors.New("unheard of")
	failing := func(err error) fault {
		return func(func(statements) error, statements) error { return err }
	}
	losing := func(run func(statements) error, what statements) error { return errors.Join(run(what), lost) }
	for name, test := range map[string]struct {
		// faults are those of the commit and, where its outcome is unknown, of the look-up.
		faults []fault
		// is what the error is, nil for nothing that the store knows; told is what it says, "" for no error.
		is     error
		told   string
		stored bool
	}{
		"unavailable before it": {[]fault{failing(away)}, store.ErrUnavailable, "the disk is away", false},
		"unknown to anybody":    {[]fault{failing(unheardOf)}, nil, "unheard of", false},
		"lost before it":        {[]fault{failing(lost)}, store.ErrOutcomeUnknown, "the answer is lost", false},
		"lost with what it did": {[]fault{func(run func(statements) error, what statements) error {
			return errors.Join(rollingBack(run, what), lost)
		}}, store.ErrOutcomeUnknown, "the answer is lost", false},
		"lost after it":                      {[]fault{losing}, nil, "", true},
		"lost after it, and nobody can look": {[]fault{losing, failing(lost)}, store.ErrOutcomeUnknown, "the answer is lost", true},
		"a statement fails": {[]fault{func(run func(statements) error, what statements) error {
			return run(func(tx *gorm.DB) error { return errors.Join(what(tx), unheardOf) })
		}}, nil, "unheard of", false},
		"a statement panics": {[]fault{func(run func(statements) error, what statements) error {
			return run(func(tx *gorm.DB) error { panic(errors.Join(what(tx), unheardOf)) })
		}}, nil, "unheard of", false},
		"run twice": {[]fault{func(run func(statements) error, what statements) error {
			if err := rollingBack(run, what); !errors.Is(err, errRolledBack) {
				return err
			}
			return run(what)
		}}, nil, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opened, faulty := newFaulty(t)
			const count = 20
			create := func(i int) error {
				_, replayed, err := keyedCreate(t, opened, fmt.Sprint(i))
				if replayed {
					t.Error("a first try is a replay")
				}
				return err
			}
			for i, err := range faulty.inOneQueue(t, opened, count, create, test.faults...) {
				if (err == nil) != (test.told == "") || !strings.Contains(fmt.Sprint(err), test.told) {
					t.Errorf("create %d: error is %v, want one of %q", i, err, test.told)
				}
				for _, known := range []error{store.ErrUnavailable, store.ErrOutcomeUnknown} {
					if errors.Is(err, known) != (known == test.is) { //nolint:errorlint // Which of the two it is.
						t.Errorf("create %d: error is %v, want %v", i, err, test.is)
					}
				}
			}
			pks := map[int32]bool{}
			for i := range count {
				pk, replayed, err := keyedCreate(t, opened, fmt.Sprint(i))
				if err != nil || replayed != test.stored {
					t.Errorf("retry %d: replayed is %v, want %v, %v", i, replayed, test.stored, err)
				}
				pks[pk] = true
			}
			if stored := names(t, opened); len(pks) != count || len(stored) != 1+count {
				t.Errorf("%d pks and %d names, want %d and one more", len(pks), len(stored), count)
			}
			expectMaintained(t, opened, faulty)
		})
	}
}

// expectMaintained closes a store whose database was maintained after each of its batches.
func expectMaintained(t *testing.T, opened *store.Store, faulty *faultyDatabase) {
	t.Helper()
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
	sizes, maintained := faulty.sizes()
	// A look-up of an outcome asks for no pks.
	batches := slices.DeleteFunc(sizes, func(size int) bool { return size == 0 })
	if maintained < len(batches) {
		t.Errorf("maintained %d times in %d batches", maintained, len(batches))
	}
}

// What one create of a batch was refused for, or would become, is not told where the outcome of the batch is unknown:
// what it was read from may be lost. The others are looked up.
func TestUndecidedCreatesOfAFailedBatch(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	if _, _, err := keyedCreate(t, opened, "taken"); err != nil {
		t.Fatal(err)
	}
	validate := func() error {
		settings := store.OAuth2Settings{ClientID: "free", PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{}}
		request := store.CreateRequest{Name: "x", ValidateOnly: true}
		_, _, err := opened.CreateOAuth2Provider(t.Context(), request, settings)
		return err
	}
	create := func(name string) error { return opened.Submit(t.Context(), name).Wait() }
	lost := func(run func(statements) error, what statements) error {
		return errors.Join(run(what), store.ErrOutcomeUnknown)
	}
	tries := []func() error{func() error { return create("taken") }, validate, func() error { return create("free") }}
	errs := faulty.inOneQueue(t, opened, len(tries), func(i int) error { return tries[i]() }, lost)
	for i, err := range errs[:2] {
		if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrClientIDTaken) || errors.Is(err, store.ErrOutcomeUnknown) {
			t.Errorf("what is taken, or validated: error %d is %v, want ErrUnavailable", i, err)
		}
	}
	if errs[2] != nil {
		t.Errorf("what is free, and found stored: error is %v", errs[2])
	}
	if sizes, _ := faulty.sizes(); sizes[2] != 2 {
		t.Errorf("pks asked for are %v, want 2 in the batch of all", sizes)
	}
	for i, try := range tries {
		if err := try(); !errors.Is(err, store.ErrClientIDTaken) {
			t.Errorf("again: error %d is %v, want ErrClientIDTaken", i, err)
		}
	}
}

// Creates without a pk are refused and keep no key; those before them are stored.
func TestFewerPKsThanCreates(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	create := func(i int) error {
		_, _, err := keyedCreate(t, opened, fmt.Sprint(i))
		return err
	}
	for most, wantStored := range map[int]int{4: 4, 20: 10} {
		base := most * 100
		faulty.count(func(f *faultyDatabase) { f.mostPKs = most })
		stored := 0
		for i, err := range faulty.inOneQueue(t, opened, 10, func(i int) error { return create(base + i) }) {
			if err == nil {
				stored++
			} else if !errors.Is(err, store.ErrNoPKLeft) || !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("create %d: error is %v, want ErrNoPKLeft", i, err)
			}
		}
		if stored != wantStored {
			t.Errorf("with %d pks, %d creates are stored, want %d", most, stored, wantStored)
		}
		faulty.count(func(f *faultyDatabase) { f.mostPKs = 0 })
		replays := 0
		for i := range 10 {
			_, replayed, err := keyedCreate(t, opened, fmt.Sprint(base+i))
			if err != nil {
				t.Error(err)
			}
			if replayed {
				replays++
			}
		}
		if replays != wantStored {
			t.Errorf("%d retries are replays, want %d", replays, wantStored)
		}
	}
}
