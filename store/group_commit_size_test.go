package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"example.com/providerd/store"
)

// Waiting creates share a commit, up to the maximum size of a batch.
func TestWaitingCreatesShareACommit(t *testing.T) {
	t.Parallel()
	for waiting, want := range map[int][]int{
		1: {1, 1}, 64: {1, 64}, 256: {1, 256}, 257: {1, 256, 1}, store.QueueLength: {1, 256, 256},
	} {
		opened, faulty := newFaulty(t)
		for i, err := range faulty.inOneQueue(t, opened, waiting, func(i int) error {
			return opened.Submit(t.Context(), fmt.Sprint(i)).Wait()
		}) {
			if err != nil {
				t.Errorf("create %d: %v", i, err)
			}
		}
		if sizes, _ := faulty.sizes(); !slices.Equal(sizes, want) {
			t.Errorf("%d waiting creates are in batches of %v, want %v", waiting, sizes, want)
		}
	}
}

// Creates without a key get their pks in the order of arrival.
func TestCreatesAreStoredInOrder(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	const count = 300
	for i, err := range faulty.inOneQueue(t, opened, count, func(i int) error {
		return opened.Submit(t.Context(), fmt.Sprintf("%03d", (i*7)%count)).Wait()
	}) {
		if err != nil {
			t.Errorf("create %d: %v", i, err)
		}
	}
	for i := range count {
		record, err := opened.Provider(t.Context(), int32(i+2))
		if err != nil || record.Common().Name != fmt.Sprintf("%03d", (i*7)%count) {
			t.Fatalf("record %d is %+v, %v", i+2, record, err)
		}
	}
}

// A create whose key is already in a batch waits for the outcome of the first: the next batch replays it, or stores
// it if the first was refused.
func TestSecondCreateWithAKeyWaits(t *testing.T) {
	t.Parallel()
	lost := func(func(statements) error, statements) error { return store.ErrUnavailable }
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

// A canceled create takes no place in a batch.
func TestCanceledCreatesAreLeftOut(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Add(199)
	errs := faulty.inOneQueue(t, opened, 300, func(i int) error {
		switch {
		case i == 299:
			cancel()
			waiting.Wait()
			return opened.Submit(t.Context(), "last").Wait()
		case i%3 == 0:
			return opened.Submit(t.Context(), fmt.Sprint(i)).Wait()
		default:
			defer waiting.Done()
			err := opened.Submit(ctx, fmt.Sprint(i)).Wait()
			if !errors.Is(err, context.Canceled) {
				return fmt.Errorf("want context.Canceled, got %w", err)
			}
			return nil
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if sizes, _ := faulty.sizes(); !slices.Equal(sizes, []int{1, 101}) {
		t.Errorf("batches have sizes %v", sizes)
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
