package store_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/providerd/store"
)

// Stats returns the number of waiting creates, and the watcher is called for each batch before its callers get the
// outcome.
func TestStatsAndBatches(t *testing.T) {
	t.Parallel()
	database, faulty := newFaulty(t)
	var mutex sync.Mutex
	var batches []int
	database.Watch(func(creates int, took time.Duration) {
		mutex.Lock()
		defer mutex.Unlock()
		if batches = append(batches, creates); took <= 0 {
			t.Errorf("a batch took %v", took)
		}
	})
	first, release := faulty.holdUp(t, database, rollingBack)
	const waiting = 7
	submissions := make([]store.Submission, waiting)
	for i := range submissions {
		submissions[i] = database.Submit(t.Context(), store.RandomAlphanumeric(10))
	}
	database.AwaitQueue(waiting)
	if stats := database.Stats(); stats.QueueLength != waiting || stats.QueueCapacity != store.QueueLength ||
		stats.Database.WAL == nil {
		t.Errorf("while creates wait, stats are %+v", stats)
	}
	release()
	if err := first.Wait(); err != nil {
		t.Error(err)
	}
	for _, submission := range submissions {
		if err := submission.Wait(); err == nil {
			t.Error("a create that was rolled back did not fail")
		}
	}
	mutex.Lock()
	defer mutex.Unlock()
	if !slices.Equal(batches, []int{1, waiting}) || database.Stats().QueueLength != 0 {
		t.Errorf("batches had %v creates, and %d wait", batches, database.Stats().QueueLength)
	}
}
