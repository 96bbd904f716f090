package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/providerd/store"
)

// keyedCreate creates a provider whose key and client_id are its name.
func keyedCreate(t *testing.T, opened *store.Store, name string) (pk int32, replayed bool, err error) {
	t.Helper()
	record, replayed, err := opened.CreateOAuth2Provider(t.Context(), store.CreateRequest{
		Name: name, CreatedBy: "caller", IdempotencyKey: &name, BodyDigest: []byte(name),
	}, store.OAuth2Settings{ClientID: name, PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{}})
	return record.PK, replayed, err
}

// Whatever the outcome of a commit, every caller of the batch gets it, a retry settles it, and nothing is stored twice.
func TestFailedCommit(t *testing.T) {
	t.Parallel()
	noDisk := fmt.Errorf("%w: the disk is missing", store.ErrUnavailable)
	lost := fmt.Errorf("%w: the response is lost", store.ErrOutcomeUnknown)
	errUnknown := errors.New("unknown error")
	for name, test := range map[string]struct {
		// faults are those of the commit and, if its outcome is unknown, of the lookup.
		faults []fault
		// want is the sentinel of the error, nil for an unknown error; text is in its message, "" for no error.
		want   error
		text   string
		stored bool
	}{
		"unavailable before": {[]fault{failing(noDisk)}, store.ErrUnavailable, "the disk is missing", false},
		"unknown error":      {[]fault{failing(errUnknown)}, nil, "unknown error", false},
		"lost before":        {[]fault{failing(lost)}, store.ErrOutcomeUnknown, "the response is lost", false},
		"lost and rolled back": {[]fault{func(run func(statements) error, what statements) error {
			return errors.Join(rollingBack(run, what), lost)
		}}, store.ErrOutcomeUnknown, "the response is lost", false},
		"lost after":                   {[]fault{losing(lost)}, nil, "", true},
		"lost after, and lookup fails": {[]fault{losing(lost), failing(lost)}, store.ErrOutcomeUnknown, "the response is lost", true},
		"a statement fails":            {[]fault{failingLate(errUnknown)}, nil, "unknown error", false},
		"a statement panics": {[]fault{func(run func(statements) error, what statements) error {
			return run(func(tx *gorm.DB) error { panic(errors.Join(what(tx), errUnknown)) })
		}}, nil, "unknown error", false},
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
					t.Error("a first attempt is a replay")
				}
				return err
			}
			for i, err := range faulty.inOneQueue(t, opened, count, create, test.faults...) {
				if (err == nil) != (test.text == "") || !strings.Contains(fmt.Sprint(err), test.text) {
					t.Errorf("create %d: error is %v, want %q", i, err, test.text)
				}
				for _, known := range []error{store.ErrUnavailable, store.ErrOutcomeUnknown} {
					if errors.Is(err, known) != (known == test.want) { //nolint:errorlint // The two sentinels are compared.
						t.Errorf("create %d: error is %v, want %v", i, err, test.want)
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
				t.Errorf("%d pks and %d names, want %d pks and one name more", len(pks), len(stored), count)
			}
			expectMaintained(t, opened, faulty)
		})
	}
}

// expectMaintained closes the store and checks that the database was maintained after each batch.
func expectMaintained(t *testing.T, opened *store.Store, faulty *faultyDatabase) {
	t.Helper()
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
	sizes, maintained := faulty.sizes()
	// The lookup of an outcome reserves no pks.
	batches := slices.DeleteFunc(sizes, func(size int) bool { return size == 0 })
	if maintained < len(batches) {
		t.Errorf("maintained %d times in %d batches", maintained, len(batches))
	}
}

// If the outcome of a batch is unknown, refusals and validations are not reported: what they were read from may be
// lost. The other creates are looked up.
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
	attempts := []func() error{func() error { return create("taken") }, validate, func() error { return create("free") }}
	errs := faulty.inOneQueue(t, opened, len(attempts), func(i int) error { return attempts[i]() }, losing(store.ErrOutcomeUnknown))
	for i, err := range errs[:2] {
		if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrClientIDTaken) || errors.Is(err, store.ErrOutcomeUnknown) {
			t.Errorf("taken or validated: error %d is %v, want ErrUnavailable", i, err)
		}
	}
	if errs[2] != nil {
		t.Errorf("free, and found stored: error is %v", errs[2])
	}
	if sizes, _ := faulty.sizes(); sizes[2] != 2 {
		t.Errorf("requested pks are %v, want 2 in the third batch", sizes)
	}
	for i, attempt := range attempts {
		if err := attempt(); !errors.Is(err, store.ErrClientIDTaken) {
			t.Errorf("again: error %d is %v, want ErrClientIDTaken", i, err)
		}
	}
}

// While creates are refused, so are validations. Replays still work, and a create in the same batch is tried.
func TestValidationIsRefusedLikeCreates(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	if _, _, err := keyedCreate(t, opened, "replay"); err != nil {
		t.Fatal(err)
	}
	refusal := fmt.Errorf("%w: no space left", store.ErrUnavailable)
	faulty.count(func(f *faultyDatabase) { f.refusal = refusal })
	validate := func(key string) error {
		_, _, err := opened.CreateOAuth2Provider(t.Context(), store.CreateRequest{
			Name: key, CreatedBy: "caller", IdempotencyKey: &key, BodyDigest: []byte(key), ValidateOnly: true,
		}, store.OAuth2Settings{ClientID: key})
		return err
	}
	errs := faulty.inOneQueue(t, opened, 3, func(i int) error {
		if i == 0 {
			return validate("new")
		}
		_, _, err := keyedCreate(t, opened, []string{"replay", "create"}[i-1])
		return err
	})
	if !errors.Is(errs[0], refusal) || errs[1] != nil || errs[2] != nil {
		t.Errorf("errors of a validation, a replay and a create are %v, want %v and none", errs, refusal)
	}
	if err := validate("replay"); err != nil {
		t.Errorf("validation of a replay: %v", err)
	}
	faulty.count(func(f *faultyDatabase) { f.refusal = nil })
	if err := validate("new"); err != nil {
		t.Errorf("validation after recovery: %v", err)
	}
}

// If a batch fails, a create whose deadline has passed is refused. The others are stored by the next batch.
func TestLateCreateIsRefusedAlone(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	opened.SetLeastTime(time.Second)
	hasty, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	untilLate := func(func(statements) error, statements) error {
		<-hasty.Done()
		return fmt.Errorf("%w: no response", store.ErrUnavailable)
	}
	errs := faulty.inOneQueue(t, opened, 3, func(i int) error {
		ctx := t.Context()
		if i == 1 {
			ctx = hasty
		}
		// A create without a deadline is not claimed again.
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, _, err := opened.CreateOAuth2Provider(ctx, store.CreateRequest{Name: "late", CreatedBy: "caller"},
			store.OAuth2Settings{ClientID: fmt.Sprint(i), PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{}})
		return err
	}, untilLate)
	if errs[0] != nil || !errors.Is(errs[1], store.ErrUnavailable) || errs[2] != nil {
		t.Errorf("errors are %v, want only one, of the second create", errs)
	}
}

// A replay fails if its pk has no record, or that of another key: an old primary that still runs may have given the
// pk to another create.
func TestReplayIsTheRecordOfItsKey(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	other, elsewhere := faulty.copied(t)
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
