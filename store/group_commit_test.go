package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"example.com/providerd/store"
)

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

func TestFullQueueRefusesAtOnce(t *testing.T) {
	t.Parallel()
	database, faulty := newFaulty(t)
	begun, release := faulty.holdUp(t, database)
	submissions := []store.Submission{begun}
	for i := range store.QueueLength {
		submissions = append(submissions, database.Submit(t.Context(), fmt.Sprint(i)))
	}
	database.AwaitQueue(store.QueueLength)
	if err := database.Submit(t.Context(), "too many").Wait(); !errors.Is(err, store.ErrOverloaded) {
		t.Errorf("error is %v, want ErrOverloaded", err)
	}
	release()
	for _, one := range submissions {
		if err := one.Wait(); err != nil {
			t.Error(err)
		}
	}
	if stored := names(t, database); len(stored) != store.QueueLength+1 || stored["too many"] {
		t.Errorf("%d records are stored", len(stored))
	}
}

func TestCloseStoresWhatWaits(t *testing.T) {
	t.Parallel()
	database, faulty := newFaulty(t)
	begun, release := faulty.holdUp(t, database)
	submissions := []store.Submission{begun}
	for i := range 9 {
		submissions = append(submissions, database.Submit(t.Context(), fmt.Sprint(i)))
	}
	database.AwaitQueue(9)
	var group sync.WaitGroup
	group.Go(release)
	if err := database.Close(); err != nil {
		t.Error(err)
	}
	group.Wait()
	for _, one := range submissions {
		if err := one.Wait(); err != nil {
			t.Error(err)
		}
	}
	if err := database.Submit(t.Context(), "late").Wait(); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("after Close error is %v, want ErrUnavailable", err)
	}
	if stored := names(t, create(t, faulty.path)); len(stored) != 10 {
		t.Errorf("%d records are stored, want 10", len(stored))
	}
}

// The creates for which no pk is left are refused, those before them are stored.
func TestLastPK(t *testing.T) {
	t.Parallel()
	database, faulty := newFaulty(t)
	if err := database.Submit(t.Context(), "first").Wait(); err != nil {
		t.Fatal(err)
	}
	execute(t, faulty.path, "UPDATE sqlite_sequence SET seq = 2147483645 WHERE name = 'providers'")
	begun, release := faulty.holdUp(t, database)
	submissions := []store.Submission{begun}
	for i := range 3 {
		submissions = append(submissions, database.Submit(t.Context(), fmt.Sprint(i)))
		database.AwaitQueue(i + 1)
	}
	release()
	for i, one := range submissions {
		err := one.Wait()
		if left := i < 2; left && err != nil || !left && !errors.Is(err, store.ErrNoPKLeft) {
			t.Errorf("create %d: error is %v", i, err)
		}
	}
	if stored := names(t, database); len(stored) != 3 || !stored["first"] || !stored["0"] {
		t.Errorf("stored are %v", stored)
	}
}

// A statement that SQLite does not understand is this program's fault, not the storage's.
func TestWrongStatementIsNoFaultOfTheStorage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	database := create(t, path)
	execute(t, path, "DROP TABLE oauth2_providers")
	err := database.Submit(t.Context(), "x").Wait()
	if err == nil || errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "no such table") {
		t.Errorf("error is %v", err)
	}
	if err := database.Ready(t.Context()); err != nil {
		t.Errorf("Ready: %v", err)
	}
}
