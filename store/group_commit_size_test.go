package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"example.com/providerd/store"
)

// Waiting creates share a commit, up to the maximum size of a batch, and get their pks in the order of arrival.
func TestWaitingCreatesShareACommit(t *testing.T) {
	t.Parallel()
	for waiting, want := range map[int][]int{
		1: {1, 1}, 64: {1, 64}, 256: {1, 256}, 257: {1, 256, 1}, store.QueueLength: {1, 256, 256},
	} {
		opened, faulty := newFaulty(t)
		name := func(i int) string { return fmt.Sprint(i * 7919 % waiting) }
		errs := faulty.inOneQueue(t, opened, waiting, func(i int) error { return opened.Submit(t.Context(), name(i)).Wait() })
		for i, err := range errs {
			record, readErr := opened.Provider(t.Context(), int32(i+2))
			if err := errors.Join(err, readErr); err != nil || record.Common().Name != name(i) {
				t.Fatalf("create %d: record is %+v, %v", i, record, err)
			}
		}
		if sizes, _ := faulty.sizes(); !slices.Equal(sizes, want) {
			t.Errorf("%d waiting creates are in batches of %v, want %v", waiting, sizes, want)
		}
	}
}

// A create whose key is already in a batch waits for the outcome of the first: the next batch replays it, or stores
// it if the first was refused.
func TestSecondCreateWithAKeyWaits(t *testing.T) {
	t.Parallel()
	lost := failing(store.ErrUnavailable)
	for name, test := range map[string]struct {
		faults    []fault
		wantSizes []int
		// wantErrs and wantReplays count the outcomes of three creates with the same key, interleaved with others.
		wantErrs, wantReplays int
	}{
		"the first is stored":       {nil, []int{1, 3, 0, 0}, 0, 2},
		"the first fails":           {[]fault{lost}, []int{1, 0, 1, 0}, 1, 1},
		"the first and second fail": {[]fault{lost, lost}, []int{1, 0, 0, 1}, 2, 0},
		"all three fail":            {[]fault{lost, lost, lost}, []int{1, 0, 0, 0}, 3, 0},
	} {
		opened, faulty := newFaulty(t)
		replays := make([]bool, 5)
		errs := faulty.inOneQueue(t, opened, 5, func(i int) (err error) {
			if i%2 == 1 {
				return opened.Submit(t.Context(), fmt.Sprint(i)).Wait()
			}
			_, replays[i], err = keyedCreate(t, opened, "same")
			return err
		}, test.faults...)
		gotErrs, gotReplays := 0, 0
		for i := 0; i < len(errs); i += 2 {
			if replays[i] {
				gotReplays++
			}
			if errs[i] != nil {
				gotErrs++
			}
		}
		if sizes, _ := faulty.sizes(); !slices.Equal(sizes, test.wantSizes) || gotErrs != test.wantErrs || gotReplays != test.wantReplays {
			t.Errorf("%s: %d errors and %d replays in batches of %v, want %d and %d in %v",
				name, gotErrs, gotReplays, sizes, test.wantErrs, test.wantReplays, test.wantSizes)
		}
	}
}

func names(t *testing.T, database *store.Store) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for record, err := range database.Providers(t.Context(), store.Filter{}, 0) {
		if err != nil {
			t.Fatal(err)
		}
		names[record.Common().Name] = true
	}
	return names
}
