package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
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
	synctest.Test(t, func(t *testing.T) {
		slow.begun = time.Now()
		opened, err := store.OverBatches(t.Context(), slow)
		if err != nil {
			t.Fatal(err)
		}
		test(t, opened)
	})
}

func (d *slowDatabase) expectCalls(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(d.calls, want) {
		t.Errorf("calls are %v, want %v", d.calls, want)
	}
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
	slow.expectCalls(t, "commit 2", "maintain 2", "maintain 5", "maintain 10", "commit 13", "maintain 13",
		"batches closed 13", "database closed 13")
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
	slow.expectCalls(t, "commit 4", "maintain 4", "batches closed 4", "database closed 4")
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
	slow.expectCalls(t, "commit 1", "maintain 1", "commit 2", "maintain 2", "commit 3", "maintain 3",
		"batches closed 4", "database closed 4", "database closed 4")
}

// A watcher sees the size of each batch, and each create gets its timing: one that is alone, two that share the next
// transaction, and one whose caller gives up before that transaction begins.
func TestTiming(t *testing.T) {
	t.Parallel()
	slow := &slowDatabase{commit: 4 * time.Second}
	var timings [4]store.Timing
	var batches []int
	inBubble(t, slow, func(t *testing.T, opened *store.Store) {
		opened.Watch(func(creates int, took time.Duration) {
			if batches = append(batches, creates); took != slow.commit {
				t.Errorf("a batch took %s, want %s", took, slow.commit)
			}
		})
		var group sync.WaitGroup
		create := func(ctx context.Context, number int, want error) {
			group.Go(func() {
				_, _, err := opened.CreateOAuth2Provider(ctx, store.CreateRequest{Timing: &timings[number]}, store.OAuth2Settings{})
				if !errors.Is(err, want) {
					t.Errorf("create %d: error is %v, want %v", number, err, want)
				}
			})
			synctest.Wait()
		}
		create(t.Context(), 0, nil)
		<-time.After(time.Second)
		create(t.Context(), 1, nil)
		hasty, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		create(hasty, 3, context.DeadlineExceeded)
		<-time.After(time.Second)
		create(t.Context(), 2, nil)
		group.Wait()
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	at := func(seconds int) time.Time { return slow.begun.Add(time.Duration(seconds) * time.Second) }
	for number, want := range []store.Timing{
		{Queued: at(0), Begun: at(0), Ended: at(4), BatchSize: 1},
		{Queued: at(1), Begun: at(4), Ended: at(8), BatchSize: 2},
		{Queued: at(2), Begun: at(4), Ended: at(8), BatchSize: 2},
		{Queued: at(1)},
	} {
		if timings[number] != want {
			t.Errorf("create %d: timing is %+v, want %+v", number, timings[number], want)
		}
	}
	if !slices.Equal(batches, []int{1, 2}) {
		t.Errorf("the watcher saw batches of %v creates", batches)
	}
}
