package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"example.com/providerd/store/database"
	"example.com/providerd/store/keyset"
)

const (
	// queueLength is how many creates can wait; with more, callers would give up before their turn.
	queueLength = 512
	// reservedPlaces are further ones for callers with fewer than fewWaiting creates in the queue, so that one caller with
	// many connections does not keep the others out.
	reservedPlaces = 128
	fewWaiting     = 8
	// maxBatch is the maximum number of creates in a batch.
	maxBatch = 256
	// sharedLanes is the number of concurrent batches on a shared database: one is sent while another commits.
	sharedLanes = 2
)

// Timing holds the times of a create's steps. A time is zero if the create did not reach the step.
type Timing struct {
	// Queued is when it began to wait for its batch.
	Queued time.Time
	// Begun is when its batch began, and Ended when it was durable or had failed.
	Begun, Ended time.Time
	// BatchSize is the number of creates in the batch.
	BatchSize int
	// HasFailed reports whether the database failed for the create.
	HasFailed bool
}

// batcher inserts all waiting creates with one statement (group commit). It does not wait for a batch to fill: a lone
// create is inserted immediately, in the goroutine of its caller, which avoids waking another goroutine.
type batcher struct {
	inserter
	queue chan *create
	// wake receives a value when a create is queued, to wake a waiting lane.
	wake chan struct{}
	// mutex guards closed, so that nothing is sent to a closed queue, and waiting, the creates in the queue by caller.
	mutex   sync.Mutex
	closed  bool
	waiting map[string]int
	// lanes holds a value for each lane that inserts: a goroutine of the batcher or of a caller.
	lanes chan struct{}
	ended sync.WaitGroup
	// crowded is true if the last batch had several creates. If it had one, yielding would only wake a thread.
	crowded atomic.Bool
	// watcher is called for each batch; nil if there is none.
	watcher atomic.Pointer[func(creates int, took time.Duration)]
}

func startBatcher(db database.Database, keys *keyset.Keys) *batcher {
	b, lanes := &batcher{
		inserter: newInserter(db, keys), queue: make(chan *create, queueLength+reservedPlaces), waiting: map[string]int{},
	}, 1
	if db.IsShared() {
		b.leastTime, lanes = leastTime, sharedLanes
	}
	b.wake, b.lanes = make(chan struct{}, lanes), make(chan struct{}, lanes)
	for range lanes {
		b.ended.Go(b.run)
	}
	return b
}

// submit queues a create and waits for its outcome. If the context ends before the batch of the create begins, the
// create is left out. A batch that has begun runs to its end.
func (b *batcher) submit(ctx context.Context, c *create) error {
	if err := ctx.Err(); err != nil {
		return gaveUp(err)
	}
	if b.leastTime > 0 {
		c.deadline, _ = ctx.Deadline()
	}
	keys, err := b.keys.Fresh(ctx)
	if err == nil {
		err = b.seal(c, keys)
	}
	if err != nil {
		return err
	}
	if c.timing != nil {
		c.timing.Queued = time.Now()
	}
	if b.acquire() {
		defer func() { <-b.lanes; b.ended.Done() }()
		b.insert([]*create{c})
		return c.err
	}
	if err := b.enqueue(c); err != nil {
		return err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		if c.claimed.CompareAndSwap(false, true) {
			return gaveUp(ctx.Err())
		}
		<-c.done
	}
	return c.err
}

func gaveUp(err error) error { return fmt.Errorf("caller canceled: %w", err) }

// acquire reports whether the caller may insert now: no other create waits, and no other batch is in progress.
func (b *batcher) acquire() bool {
	if b.crowded.Load() {
		// Let callers that are ready to run enqueue first, so that they form a batch.
		runtime.Gosched()
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.closed || len(b.queue) > 0 || len(b.lanes) > 0 {
		return false
	}
	select {
	case b.lanes <- struct{}{}:
		b.ended.Add(1)
		return true
	default:
		return false
	}
}

// enqueue puts a create into the queue, or returns ErrOverloaded.
func (b *batcher) enqueue(c *create) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.closed {
		return ErrUnavailable
	}
	if len(b.queue) == cap(b.queue) || len(b.queue) >= queueLength && b.waiting[c.common.CreatedBy] >= fewWaiting {
		return ErrOverloaded
	}
	c.done = make(chan struct{})
	b.queue <- c
	b.waiting[c.common.CreatedBy]++
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return nil
}

// leave notes that a create was taken from the queue.
func (b *batcher) leave(c *create) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.waiting[c.common.CreatedBy]--; b.waiting[c.common.CreatedBy] == 0 {
		delete(b.waiting, c.common.CreatedBy)
	}
}

// run inserts batches until the queue is closed and empty.
func (b *batcher) run() {
	for open := true; open; {
		_, open = <-b.wake
		// Let callers that are ready to run enqueue too. This returns immediately if there are none.
		runtime.Gosched()
		b.lanes <- struct{}{}
		for batch := b.next(); len(batch) > 0; batch = b.next() {
			b.insert(batch)
		}
		<-b.lanes
	}
}

// next returns all waiting creates, up to a batch.
func (b *batcher) next() (batch []*create) {
	for len(batch) < maxBatch {
		select {
		case c, ok := <-b.queue:
			if !ok {
				return batch
			}
			b.leave(c)
			if c.claimed.CompareAndSwap(false, true) {
				batch = append(batch, c)
			}
		default:
			return batch
		}
	}
	return batch
}

// insert inserts a batch and reports its outcome to each caller. None of their contexts cancels it.
func (b *batcher) insert(batch []*create) {
	begun := time.Now()
	b.crowded.Store(len(batch) > 1)
	finish := func(c *create) {
		if c.timing != nil {
			c.timing.Begun, c.timing.Ended, c.timing.BatchSize = begun, time.Now(), len(batch)
			c.timing.HasFailed = errors.Is(c.err, ErrUnavailable) || errors.Is(c.err, ErrOutcomeUnknown)
		}
		if c.done != nil {
			close(c.done)
		}
	}
	last := b.insertAll(batch, finish)
	if watch := b.watcher.Load(); watch != nil {
		(*watch)(len(batch), time.Since(begun))
	}
	for _, c := range last {
		finish(c)
	}
}

// close refuses further creates and waits until the waiting ones are stored. It can be called twice.
func (b *batcher) close() {
	b.mutex.Lock()
	if !b.closed {
		b.closed = true
		close(b.queue)
		close(b.wake)
	}
	b.mutex.Unlock()
	b.ended.Wait()
}
