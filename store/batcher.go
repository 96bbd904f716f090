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
)

const (
	// queueLength is how many creates can wait; with more, callers would give up before their turn.
	queueLength = 512
	// maxBatch is the maximum number of creates in a transaction.
	maxBatch = 256
	// sharedLanes is the number of concurrent batches on a shared database: the next batch is sent while one waits for its
	// commit.
	sharedLanes = 2
	// leastTime is enough for a transaction over the network, including its commit.
	leastTime = 1500 * time.Millisecond
	// maintenanceInterval is how often an idle database is maintained.
	maintenanceInterval = 5 * time.Second
)

// batcher commits all waiting creates in one transaction (group commit). It does not wait for a batch to fill: a lone
// create is committed at once, in the goroutine of its caller, which avoids waking another goroutine.
type batcher struct {
	keys *keyCache
	// leastTime is how much time a create must have left when its batch begins; 0 for a database without deadlines.
	leastTime time.Duration
	queue     chan *create
	// wake receives a value when a create is queued, to wake a waiting lane.
	wake chan struct{}
	// mutex guards closed, so that nothing is sent to a closed queue.
	mutex  sync.RWMutex
	closed bool
	lanes  []*lane
	// crowded is true if the last batch had several creates. If it had one, yielding would only wake a thread.
	crowded atomic.Bool
	// watcher is called for each batch; nil if there is none.
	watcher atomic.Pointer[func(creates int, took time.Duration)]
}

// lane commits one batch after another.
type lane struct {
	*batcher
	database database.Batches
	// working holds a value while a goroutine commits batches: the lane's own until the queue is empty, or a caller's.
	working chan struct{}
	// closeError is valid once ended is closed.
	closeError error
	ended      chan struct{}
}

// startBatcher opens the connections of a batcher and starts its lanes.
func startBatcher(ctx context.Context, db database.Database, keys *keyCache) (*batcher, error) {
	b, lanes := &batcher{keys: keys, queue: make(chan *create, queueLength)}, 1
	if db.IsShared() {
		b.leastTime, lanes = leastTime, sharedLanes
	}
	b.wake = make(chan struct{}, lanes)
	for range lanes {
		batches, err := db.Batches(ctx)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start group commit: %w", err), b.close())
		}
		l := &lane{batcher: b, database: batches, working: make(chan struct{}, 1), ended: make(chan struct{})}
		b.lanes = append(b.lanes, l)
		go l.run() //nolint:gosec // The batcher outlives the context that it was started in.
	}
	return b, nil
}

// submit queues a create and waits for its outcome. If the context ends before the batch of the create begins, the
// create is left out. A batch that has begun runs to its end, on a shared database until the deadline of the context.
func (b *batcher) submit(ctx context.Context, c *create) error {
	if err := ctx.Err(); err != nil {
		return gaveUp(err)
	}
	c.done = make(chan struct{})
	c.deadline, _ = ctx.Deadline()
	if c.isLate(b.leastTime) {
		return errLate
	}
	c.queued()
	if free := b.freeLane(); free != nil {
		free.commitAlone(ctx, c)
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

// freeLane acquires an idle lane for the caller, or returns nil if there is none.
func (b *batcher) freeLane() *lane {
	if b.crowded.Load() {
		// Let callers that are ready to run enqueue first, so that they form a batch.
		runtime.Gosched()
	}
	b.mutex.RLock()
	defer b.mutex.RUnlock()
	if b.closed || len(b.queue) > 0 {
		return nil
	}
	select {
	case b.lanes[0].working <- struct{}{}:
		return b.lanes[0]
	default:
		return nil
	}
}

// commitAlone commits a create in the goroutine of its caller, then releases the lane.
func (l *lane) commitAlone(ctx context.Context, c *create) {
	defer l.release()
	// The caller cannot cancel a batch that has begun.
	ctx = context.WithoutCancel(ctx)
	_ = l.commit(ctx, batch{c})
}

// acquire waits until no other goroutine uses the lane.
func (l *lane) acquire() { l.working <- struct{}{} }

func (l *lane) release() { <-l.working }

// commit commits a batch and reports the outcome to its callers. If the earliest deadline ended the batch, it returns
// the creates that have time for another one.
func (l *lane) commit(ctx context.Context, creates batch) (again batch) {
	begun := time.Now()
	l.crowded.Store(len(creates) > 1)
	bounded, cancel := creates.untilDeadline(ctx, l.leastTime)
	defer cancel()
	err := creates.commit(bounded, l.database, l.keys)
	if watch := l.watcher.Load(); watch != nil {
		(*watch)(len(creates), time.Since(begun))
	}
	creates.recordTiming(begun, err)
	if errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrOutcomeUnknown) && creates.hasLate(l.leastTime) {
		creates, again = creates.split(l.leastTime)
	}
	creates.finish(err)
	l.database.Maintain(ctx)
	return again
}

func gaveUp(err error) error { return fmt.Errorf("caller canceled: %w", err) }

func (b *batcher) enqueue(c *create) error {
	b.mutex.RLock()
	defer b.mutex.RUnlock()
	if b.closed {
		return ErrUnavailable
	}
	select {
	case b.queue <- c:
	default:
		return ErrOverloaded
	}
	// Wake every lane: a caller may be using the first one.
	for range b.lanes {
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

// run commits batches until the queue is closed and empty, then closes the connection.
func (l *lane) run() {
	defer close(l.ended)
	// A batch serves several callers, so none of their contexts may cancel it.
	ctx := context.Background()
	idle := time.NewTicker(maintenanceInterval)
	defer idle.Stop()
	l.acquire()
	defer l.release()
	var held []*create
	for {
		var next batch
		next, held = l.nextBatch(ctx, held, idle.C)
		if len(next) == 0 {
			l.closeError = l.database.Close()
			return
		}
		held = append(held, l.commit(ctx, next)...)
	}
}

// nextBatch returns all waiting creates, and waits if there are none. A create with the same idempotency key as another
// in the batch is held for the next batch, which finds the record of the first. A create that has waited too long is
// refused, so that its deadline does not cut the batch short for others. The batch is empty once the queue is closed.
func (l *lane) nextBatch(ctx context.Context, held []*create, idle <-chan time.Time) (next batch, hold []*create) {
	keys := map[idempotencyScope]bool{}
	add := func(c *create) {
		scope, hasKey := c.creation.idempotencyScope()
		switch {
		case len(next) == maxBatch, hasKey && keys[scope]:
			hold = append(hold, c)
		case l.claim(c):
			keys[scope] = hasKey
			next = append(next, c)
		}
	}
	for _, c := range held {
		add(c)
	}
	for len(next) < maxBatch && len(hold) < maxBatch {
		c, ended := l.poll()
		switch {
		case c != nil:
			add(c)
		case ended || len(next) > 0:
			return next, hold
		default:
			l.await(ctx, idle)
		}
	}
	return next, hold
}

// claim reports whether a create can join the next batch. A create that is too late is refused.
func (l *lane) claim(c *create) bool {
	if !c.claimed.CompareAndSwap(false, true) {
		return false
	}
	if c.isLate(l.leastTime) {
		batch{c}.finish(errLate)
		return false
	}
	return true
}

// poll returns the next waiting create, or nil. It reports whether the queue is closed.
func (b *batcher) poll() (c *create, ended bool) {
	select {
	case c, ok := <-b.queue:
		return c, !ok
	default:
		return nil, false
	}
}

// await returns when the queue may hold a create or is closed. Until then, callers can use the lane.
func (l *lane) await(ctx context.Context, idle <-chan time.Time) {
	l.release()
	defer l.acquire()
	for {
		select {
		case <-l.wake:
			// Let callers that are ready to run enqueue too. This returns at once if there are none.
			runtime.Gosched()
			return
		case <-idle:
			l.acquire()
			l.database.Maintain(ctx)
			l.release()
		}
	}
}

// close refuses further creates, waits until the waiting ones are stored and the connections closed, and returns the
// errors of closing. It can be called twice.
func (b *batcher) close() error {
	b.mutex.Lock()
	if !b.closed {
		b.closed = true
		close(b.queue)
		close(b.wake)
	}
	b.mutex.Unlock()
	var errs []error
	for _, lane := range b.lanes {
		<-lane.ended
		errs = append(errs, lane.closeError)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop group commit: %w", err)
	}
	return nil
}
