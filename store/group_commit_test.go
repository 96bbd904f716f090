package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
)

// Waiting creates share a commit, up to the maximum size of a batch.
func TestWaitingCreatesShareACommit(t *testing.T) {
	t.Parallel()
	for waiting, want := range map[int][]int{
		1: {1}, 64: {64}, 256: {256}, 257: {256, 1}, 512: {256, 256},
	} {
		opened, faulty := newFaulty(t)
		errs, sizes := faulty.inOneQueue(t, opened, waiting, func(i int) error { return add(t.Context(), opened, fmt.Sprint(i)) })
		if err := errors.Join(errs...); err != nil || !slices.Equal(sizes, want) {
			t.Errorf("%d waiting creates are in batches of %v, want %v: %v", waiting, sizes, want, err)
		}
		if stored := names(t, opened); len(stored) != waiting+1 {
			t.Errorf("%d of %d are stored", len(stored)-1, waiting)
		}
	}
}

// slowDatabase commits slowly. It records each call with the seconds since begun.
type slowDatabase struct {
	database.Database
	commit   time.Duration
	isShared bool

	mutex sync.Mutex
	begun time.Time
	calls []string
}

func (d *slowDatabase) record(call string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.calls = append(d.calls, fmt.Sprintf("%s %.0f", call, time.Since(d.begun).Seconds()))
}

func (d *slowDatabase) Insert(ctx context.Context, rows database.Insertion) (map[uuid.UUID]int64, error) {
	<-time.After(d.commit)
	d.record(fmt.Sprintf("insert %d at", len(rows.Rows)))
	return d.Database.Insert(ctx, rows)
}

func (d *slowDatabase) IsShared() bool { return d.isShared }

func (d *slowDatabase) Close() error {
	d.record("close at")
	return d.Database.Close()
}

// inBubble runs a test over a slow database, with simulated time.
func inBubble(t *testing.T, slow *slowDatabase, test func(t *testing.T, opened *store.Store)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	db, err := sqlite.Create(t.Context(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	slow.Database = db
	keyset := filepath.Join(filepath.Dir(path), "keyset.json")
	if _, err := seal.ReadOrCreateMasterKeys(keyset); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		slow.begun = time.Now()
		opened, err := store.Create(t.Context(), slow, keyset)
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

// start starts a create, waits until it does, and returns its outcome.
func start(ctx context.Context, opened *store.Store, name string) <-chan error {
	outcome := make(chan error, 1)
	go func() { outcome <- add(ctx, opened, name) }()
	synctest.Wait()
	return outcome
}

// A caller waits for its batch to begin until its deadline, and then always for the outcome. Callers that gave up are in
// no batch.
func TestCallersWithDeadlines(t *testing.T) {
	t.Parallel()
	slow := &slowDatabase{commit: 4 * time.Second}
	inBubble(t, slow, func(t *testing.T, opened *store.Store) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := start(ctx, opened, "begun")
		for _, waiting := range []<-chan error{start(ctx, opened, "a"), start(ctx, opened, "b")} {
			if err := <-waiting; !errors.Is(err, context.DeadlineExceeded) || time.Since(slow.begun) != time.Second {
				t.Errorf("after %s: error is %v, want context.DeadlineExceeded after 1s", time.Since(slow.begun), err)
			}
		}
		if err := <-begun; err != nil || time.Since(slow.begun) != slow.commit {
			t.Errorf("after %s: %v", time.Since(slow.begun), err)
		}
		if err := add(ctx, opened, "late"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want context.DeadlineExceeded", err)
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	slow.expectCalls(t, "insert 1 at 4", "close at 4")
}

// Close stores a full queue, refuses new creates meanwhile, and then closes the database, also if called twice. It waits
// for a create that is inserted alone, though a shared database could run another batch.
func TestCloseWithAFullQueue(t *testing.T) {
	t.Parallel()
	const length = 512
	for _, waiting := range []int{0, length} {
		slow := &slowDatabase{commit: time.Second, isShared: waiting == 0}
		inBubble(t, slow, func(t *testing.T, opened *store.Store) {
			creates := []<-chan error{start(t.Context(), opened, "first")}
			for i := range waiting {
				creates = append(creates, start(t.Context(), opened, fmt.Sprint(i)))
			}
			if waiting == length {
				if err := add(t.Context(), opened, "too many"); !errors.Is(err, store.ErrOverloaded) {
					t.Errorf("error is %v, want ErrOverloaded", err)
				}
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
			if err := add(t.Context(), opened, "late"); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("error is %v, want ErrUnavailable", err)
			}
			if waited := time.Since(slow.begun); waited != 0 {
				t.Errorf("a refused create waited %s", waited)
			}
			for _, create := range creates {
				if err := <-create; err != nil {
					t.Error(err)
				}
			}
			group.Wait()
		})
		calls := []string{"insert 1 at 1", "insert 256 at 2", "insert 256 at 3", "close at 3", "close at 3"}
		if waiting == 0 {
			calls = []string{"insert 1 at 1", "close at 1", "close at 1"}
		}
		slow.expectCalls(t, calls...)
	}
}

// One caller with many creates does not keep another one out of the queue.
func TestFullQueueHasRoomForOthers(t *testing.T) {
	t.Parallel()
	const length, room = 512, 8
	inBubble(t, &slowDatabase{commit: time.Second}, func(t *testing.T, opened *store.Store) {
		create := func(caller, name string) <-chan error {
			outcome := make(chan error, 1)
			go func() {
				request := store.CreateRequest{Name: name, CreatedBy: caller}
				_, _, err := opened.CreateOAuth2Provider(t.Context(), request, storetest.FullOAuth2(name))
				outcome <- err
			}()
			synctest.Wait()
			return outcome
		}
		var stored []<-chan error
		for i := range 1 + length {
			stored = append(stored, create("crowd", fmt.Sprint(i)))
		}
		for i := range room {
			stored = append(stored, create("other", fmt.Sprint("other ", i)))
		}
		for _, caller := range []string{"crowd", "other"} {
			if err := <-create(caller, caller); !errors.Is(err, store.ErrOverloaded) {
				t.Errorf("%s: error is %v, want ErrOverloaded", caller, err)
			}
		}
		for _, outcome := range stored {
			if err := <-outcome; err != nil {
				t.Error(err)
			}
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
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
				request := store.CreateRequest{Timing: &timings[number]}
				_, _, err := opened.CreateOAuth2Provider(ctx, request, storetest.FullOAuth2(fmt.Sprint(number)))
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
