package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/records"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// Whatever the outcome of an insert, every caller of the batch gets it, a retry settles it, and nothing is stored twice.
func TestFailedInsert(t *testing.T) {
	t.Parallel()
	noDisk := fmt.Errorf("%w: the disk is missing", store.ErrUnavailable)
	lost := fmt.Errorf("%w: the response is lost", store.ErrOutcomeUnknown)
	apart := fmt.Errorf("%w: deadlock", database.ErrInsertApart)
	errUnknown := errors.New("unknown error")
	const count = 20
	for name, test := range map[string]struct {
		// inserts are the faults of the inserts, and reads those of the lookups.
		inserts, reads []storetest.Fault
		// want is the sentinel of the error, nil for an unknown error; text is in its message, "" for no error.
		want   error
		text   string
		stored bool
		sizes  []int
	}{
		"not stored":      {[]storetest.Fault{failing(noDisk)}, nil, store.ErrUnavailable, "the disk is missing", false, []int{count}},
		"unknown error":   {[]storetest.Fault{failing(errUnknown)}, nil, nil, "unknown error", false, []int{count}},
		"stored and lost": {[]storetest.Fault{losing(lost)}, nil, nil, "", true, []int{count}},
		"lost":            {[]storetest.Fault{failing(lost)}, nil, nil, "", true, []int{count, count}},
		"stored and lost, and no lookup": {
			[]storetest.Fault{losing(lost)}, []storetest.Fault{failing(noDisk)}, store.ErrOutcomeUnknown, "the response is lost", true, []int{count},
		},
		"stored and lost, and a lookup that is lost": {
			[]storetest.Fault{losing(lost)}, []storetest.Fault{losing(noDisk)}, store.ErrOutcomeUnknown, "the response is lost", true, []int{count},
		},
		"lost, and no lookup": {
			[]storetest.Fault{failing(lost)}, []storetest.Fault{failing(noDisk)}, store.ErrOutcomeUnknown, "the response is lost", false, []int{count},
		},
		"lost, then not stored": {
			[]storetest.Fault{failing(lost), failing(noDisk)}, nil, store.ErrOutcomeUnknown, "the response is lost", false, []int{count, count},
		},
		"lost four times": {
			slices.Repeat([]storetest.Fault{failing(lost)}, 4), nil, store.ErrOutcomeUnknown, "lost", false, slices.Repeat([]int{count}, 4),
		},
		"nothing met four times": {
			slices.Repeat([]storetest.Fault{failing(nil)}, 4), nil, store.ErrUnavailable, "keep creating and deleting", false, slices.Repeat([]int{count}, 4),
		},
		"nothing met, and no lookup": {
			[]storetest.Fault{failing(nil)}, []storetest.Fault{failing(noDisk)}, store.ErrUnavailable, "the disk is missing", false, []int{count},
		},
		"looked up twice":    {[]storetest.Fault{failing(nil), losing(lost)}, []storetest.Fault{twice, twice}, nil, "", true, []int{count, count}},
		"deadlock":           {[]storetest.Fault{failing(apart)}, nil, nil, "", true, []int{count, 10, 10}},
		"deadlock of a half": {slices.Repeat([]storetest.Fault{failing(apart)}, 2), nil, nil, "", true, []int{count, 10, 5, 5, 10}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opened, faulty := storetest.NewFaulty(t)
			faulty.Reads = test.reads
			errs, sizes := inOneQueue(t, opened, faulty, count, func(i int) error {
				_, replayed, err := addKeyed(t, opened, fmt.Sprint(i))
				processtest.Expect(t, !replayed, "a first attempt is a replay")
				return err
			}, test.inserts...)
			for i, err := range errs {
				processtest.Expect(t, (err == nil) == (test.text == "") && strings.Contains(fmt.Sprint(err), test.text),
					"create %d: error is %v, want %q", i, err, test.text)
				for _, known := range []error{store.ErrUnavailable, store.ErrOutcomeUnknown} {
					if errors.Is(err, known) != (known == test.want) { //nolint:errorlint // The two sentinels are compared.
						t.Errorf("create %d: error is %v, want %v", i, err, test.want)
					}
				}
			}
			processtest.Equal(t, sizes, test.sizes, "rows of the inserts")
			pks := map[int64]bool{}
			for i := range count {
				pk, replayed, err := addKeyed(t, opened, fmt.Sprint(i))
				processtest.Expect(t, err == nil && replayed == test.stored,
					"retry %d: replayed is %v, want %v, %v", i, replayed, test.stored, err)
				pks[pk] = true
			}
			if stored := storetest.Names(t, opened); len(pks) != count || len(stored) != 1+count {
				t.Errorf("%d pks and %d names, want %d pks and one name more", len(pks), len(stored), count)
			}
		})
	}
}

// If an insert fails, a create whose deadline has passed is refused, with the cause. The others are stored by the next
// insert.
func TestLateCreateIsRefusedAlone(t *testing.T) {
	t.Parallel()
	opened, faulty := storetest.NewFaulty(t)
	opened.SetLeastTime(time.Second)
	for _, outcome := range []error{store.ErrUnavailable, store.ErrOutcomeUnknown} {
		hasty, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		errs, sizes := inOneQueue(t, opened, faulty, 3, func(i int) error {
			ctx := t.Context()
			if i == 1 {
				ctx = hasty
			}
			return storetest.Add(ctx, opened, fmt.Sprint(outcome, i))
		}, func(func(error) error) error {
			<-hasty.Done()
			return fmt.Errorf("%w: no response", outcome)
		})
		isRefused := errors.Is(errs[1], outcome) && strings.Contains(fmt.Sprint(errs[1]), "no response")
		processtest.Expect(t, errs[0] == nil && isRefused && errs[2] == nil && slices.Equal(sizes, []int{3, 2}),
			"errors are %v, want only %v, of the second create; inserts have %v rows", errs, outcome, sizes)
	}
}

// One caller with many creates does not keep another one out of the queue.
func TestFullQueueHasRoomForOthers(t *testing.T) {
	t.Parallel()
	const length, room = 512, 8
	opened, faulty := storetest.NewFaulty(t)
	errs, _ := inOneQueue(t, opened, faulty, length+room+2, func(i int) error {
		request := store.CreateRequest{Name: "x", CreatedBy: "crowd"}
		if i >= length && i != length+room {
			request.CreatedBy = "other"
		}
		_, _, err := opened.Providers.CreateOAuth2(t.Context(), request, storetest.FullOAuth2(fmt.Sprint(i)))
		return err
	})
	for i, err := range errs {
		processtest.Expect(t, (i >= length+room || err == nil) && (i < length+room || errors.Is(err, store.ErrOverloaded)),
			"create %d: error is %v, want ErrOverloaded only of the last two", i, err)
	}
}

// No pk is given twice if the last provider is deleted by a command or by another program, or its events are missing, and
// a table without a higher key is named.
func TestSequencesOverSQLite(t *testing.T) {
	t.Parallel()
	const noCreates = "DELETE FROM events WHERE event = 'provider created'"
	for name, test := range map[string]struct {
		isDeleted bool
		damage    string
	}{
		"deleted":                           {isDeleted: true, damage: "DELETE FROM sqlite_sequence"},
		"deleted, the create is not listed": {isDeleted: true, damage: noCreates},
		"deleted by another program":        {damage: "DELETE FROM providers"},
		"not listed":                        {damage: noCreates},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "test.db")
			opened := processtest.Try(storetest.CreateSQLite(t.Context(), path, "")).Must(t)
			for want := int64(1); want <= 6; want++ {
				create := createAny
				if want%3 == 0 {
					create = createByCommand
				}
				pk, err := create(t, opened)
				processtest.Require(t, err == nil && pk == want, "pk is %d, want %d, %v", pk, want, err)
				if test.isDeleted {
					processtest.Must(t, opened.Providers.Delete(t.Context(), []int64{pk}))
				}
				storetest.Execute(t, path, test.damage)
				if want%2 == 0 {
					// The server continues.
					continue
				}
				processtest.Must(t, opened.Close())
				opened, err = storetest.CreateSQLite(t.Context(), path, "")
				processtest.Must(t, err)
			}
			for found, err := range opened.Log.Contradictions(t.Context()) {
				processtest.Expect(t, name != "deleted" && err == nil, "the log says %v, %v", found, err)
			}
			expectEndOfKeys(t, opened, path)
		})
	}
}

func createAny(t *testing.T, opened *store.Store) (pk int64, err error) {
	t.Helper()
	request := store.CreateRequest{Name: "any"}
	record, _, err := opened.Providers.CreateWorkspaceDirectory(t.Context(), request, storetest.FullWorkspaceDirectory())
	return record.PK, err
}

func createByCommand(t *testing.T, opened *store.Store) (pk int64, err error) {
	requested := records.WorkspaceDirectoryProvider{
		Provider: records.Provider{Name: "any", Kind: records.KindWorkspaceDirectory}, WorkspaceDirectorySettings: storetest.FullWorkspaceDirectory(),
	}
	pks, err := opened.Providers.Change(t.Context(), func(store.Reader) ([]store.Change, error) {
		return []store.Change{{Requested: requested}}, nil
	})
	return slices.Concat(pks, []int64{0})[0], err
}

// expectEndOfKeys checks that the largest id of an event fails creates, readiness and the next start, and closes the
// store.
func expectEndOfKeys(t *testing.T, opened *store.Store, path string) {
	const atEnd = "UPDATE events SET id = 9223372036854775806 WHERE id = (SELECT max(id) FROM events)"
	storetest.Execute(t, path, atEnd)
	if pk, err := createAny(t, opened); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("create: pk is %d, error is %v, want ErrUnavailable", pk, err)
	}
	ready := opened.Ready(t.Context())
	processtest.Must(t, opened.Close())
	_, opening := storetest.CreateSQLite(t.Context(), path, "")
	const says = "storage is unavailable: the last key is the largest possible, 9223372036854775806, so no row can be added to " +
		"these tables: events; restore a backup, or lower that key"
	for what, err := range map[string]error{"readiness": ready, "start": opening} {
		processtest.Expect(t, errors.Is(err, store.ErrUnavailable) && strings.HasSuffix(err.Error(), says),
			"%s: error is %v, want %q", what, err, says)
	}
}
