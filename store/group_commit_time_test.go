package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

// slowDatabase stores nothing, slowly. It records each call with the seconds since begun.
type slowDatabase struct {
	database.Database
	commit, closing time.Duration

	mutex sync.Mutex
	begun time.Time
	calls []string
}

func (d *slowDatabase) record(call string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.calls = append(d.calls, fmt.Sprintf("%s %.0f", call, time.Since(d.begun).Seconds()))
}

func (d *slowDatabase) IsShared() bool { return false }

func (d *slowDatabase) Batches(context.Context) (database.Batches, error) { return slowBatches{d}, nil }

func (d *slowDatabase) Close() error {
	d.record("database closed")
	return nil
}

type slowBatches struct{ database *slowDatabase }

func (b slowBatches) Commit(context.Context, int, func(database.Batch) error) error {
	<-time.After(b.database.commit)
	b.database.record("commit")
	return nil
}

func (b slowBatches) Maintain(context.Context) { b.database.record("maintain") }

func (b slowBatches) Close() error {
	<-time.After(b.database.closing)
	b.database.record("batches closed")
	return nil
}

// inBubble runs a test over a slow database, with simulated time.
func inBubble(t *testing.T, slow *slowDatabase, test func(t *testing.T, opened *store.Store)) {
	t.Helper()
	keyring, err := seal.OpenOrCreateKeyring(t.Context(), filepath.Join(t.TempDir(), "keyset.json"))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		slow.begun = time.Now()
		opened, err := store.OverBatches(t.Context(), slow, keyring)
		if err != nil {
			t.Fatal(err)
		}
		test(t, opened)
	})
}

// The database is maintained after each batch, and every few seconds while idle.
func TestDatabaseIsMaintained(t *testing.T) {
	t.Parallel()
	slow := &slowDatabase{}
	inBubble(t, slow, func(t *testing.T, opened *store.Store) {
		<-time.After(2 * time.Second)
		if err := opened.Submit(t.Context(), "x").Wait(); err != nil {
			t.Error(err)
		}
		<-time.After(11 * time.Second)
		if err := errors.Join(opened.Submit(t.Context(), "y").Wait(), opened.Close()); err != nil {
			t.Error(err)
		}
	})
	want := []string{
		"commit 2", "maintain 2", "maintain 5", "maintain 10", "commit 13", "maintain 13",
		"batches closed 13", "database closed 13",
	}
	if !slices.Equal(slow.calls, want) {
		t.Errorf("calls are %v, want %v", slow.calls, want)
	}
}

// A caller waits for its batch to begin until its deadline, and then always for the outcome.
func TestCallersWithDeadlines(t *testing.T) {
	t.Parallel()
	slow := &slowDatabase{commit: 4 * time.Second}
	inBubble(t, slow, func(t *testing.T, opened *store.Store) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := opened.Submit(ctx, "begun")
		synctest.Wait()
		waiting := []store.Submission{opened.Submit(ctx, "a"), opened.Submit(ctx, "b")}
		for _, submission := range waiting {
			if err := submission.Wait(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error is %v, want context.DeadlineExceeded", err)
			}
			if waited := time.Since(slow.begun); waited != time.Second {
				t.Errorf("waited %s, want 1s", waited)
			}
		}
		if err := begun.Wait(); err != nil || time.Since(slow.begun) != slow.commit {
			t.Errorf("after %s: %v", time.Since(slow.begun), err)
		}
		if err := opened.Submit(ctx, "late").Wait(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want context.DeadlineExceeded", err)
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	// Callers that gave up are in no batch, and empty batches are not committed.
	want := []string{"commit 4", "maintain 4", "batches closed 4", "database closed 4"}
	if !slices.Equal(slow.calls, want) {
		t.Errorf("calls are %v, want %v", slow.calls, want)
	}
}

// Close stores a full queue, refuses new creates meanwhile, and then closes the database, also if called twice.
func TestCloseWithAFullQueue(t *testing.T) {
	t.Parallel()
	slow := &slowDatabase{commit: time.Second, closing: time.Second}
	inBubble(t, slow, func(t *testing.T, opened *store.Store) {
		submissions := []store.Submission{opened.Submit(t.Context(), "first")}
		synctest.Wait()
		for i := range store.QueueLength {
			submissions = append(submissions, opened.Submit(t.Context(), fmt.Sprint(i)))
		}
		synctest.Wait()
		if err := opened.Submit(t.Context(), "too many").Wait(); !errors.Is(err, store.ErrOverloaded) {
			t.Errorf("error is %v, want ErrOverloaded", err)
		}
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() {
				if err := opened.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if err := opened.Submit(t.Context(), "late").Wait(); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("error is %v, want ErrUnavailable", err)
		}
		if waited := time.Since(slow.begun); waited != 0 {
			t.Errorf("a refused create waited %s", waited)
		}
		for _, submission := range submissions {
			if err := submission.Wait(); err != nil {
				t.Error(err)
			}
		}
		group.Wait()
	})
	want := []string{
		"commit 1", "maintain 1", "commit 2", "maintain 2", "commit 3", "maintain 3",
		"batches closed 4", "database closed 4", "database closed 4",
	}
	if !slices.Equal(slow.calls, want) {
		t.Errorf("calls are %v, want %v", slow.calls, want)
	}
}
