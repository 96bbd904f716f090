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
	// queueLength is how many creates may wait. More would only wait longer than their callers do.
	queueLength = 512
	// maxBatch is how many creates share a transaction.
	maxBatch = 256
	// sharedLanes is how many batches are on their way at a time to a database that replicas share: while one waits for
	// its commit, the next one is sent.
	sharedLanes = 2
	// leastTime is enough for a transaction over the network, its commit included.
	leastTime = 1500 * time.Millisecond
	// maintenanceInterval is how often the database is maintained while no create comes.
	maintenanceInterval = 5 * time.Second
)

// batcher commits all creates that wait in one transaction (group commit). It never waits for company: a lone create is
// committed at once, by the goroutine of its caller, which spares the time to wake another one.
type batcher struct {
	keys keySource
	// leastTime is how much time a create must have left when its batch begins; 0 for a database that heeds no deadline.
	leastTime time.Duration
	queue     chan *create
	// wake gets a value when something was queued, so that a lane looks that waits.
	wake chan struct{}
	// mutex lets no create enter once the queue is closed.
	mutex  sync.RWMutex
	closed bool
	lanes  []*lane
	// crowded tells that the last batch had several creates. Where it had one, yielding would only wake a thread.
	crowded atomic.Bool
	// watcher is told of each batch; nil while nobody watches.
	watcher atomic.Pointer[func(creates int, took time.Duration)]
}

// lane commits one batch after the other.
type lane struct {
	*batcher
	database database.Batches
	// working has a value while somebody commits batches. The lane's own goroutine does so until the queue is empty.
	working chan struct{}
	// closeError is valid once ended is closed.
	closeError error
	ended      chan struct{}
}

// startBatcher connects a batcher and lets it run.
func startBatcher(ctx context.Context, db database.Database, keys keySource) (*batcher, error) {
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
		one := &lane{batcher: b, database: batches, working: make(chan struct{}, 1), ended: make(chan struct{})}
		b.lanes = append(b.lanes, one)
		go one.run() //nolint:gosec // The batcher outlives the context that it was started in.
	}
	return b, nil
}

// submit queues a create and waits for its outcome: until the deadline of the context, which a batch that has begun
// keeps if the database is shared. A create whose caller gives up before its batch begins is left out; one whose caller
// gives up later may be stored.
func (b *batcher) submit(ctx context.Context, one *create) error {
	if err := ctx.Err(); err != nil {
		return gaveUp(err)
	}
	one.done = make(chan struct{})
	one.deadline, _ = ctx.Deadline()
	if one.isLate(b.leastTime) {
		return errLate
	}
	one.queued()
	if free := b.freeLane(); free != nil {
		free.commitAlone(ctx, one)
		return one.err
	}
	if err := b.enqueue(one); err != nil {
		return err
	}
	select {
	case <-one.done:
	case <-ctx.Done():
		if one.claimed.CompareAndSwap(false, true) {
			return gaveUp(ctx.Err())
		}
		<-one.done
	}
	return one.err
}

// freeLane returns a lane that has nothing to do, for the caller to work with; nil where there is none.
func (b *batcher) freeLane() *lane {
	if b.crowded.Load() {
		// Callers that need only the processor to enqueue theirs come first, so that there is a batch of them.
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

// commitAlone commits a create in the goroutine of its caller, and lets go of the lane.
func (l *lane) commitAlone(ctx context.Context, one *create) {
	defer l.release()
	// What has begun is not for the caller to end.
	ctx = context.WithoutCancel(ctx)
	_ = l.commit(ctx, batch{one})
}

// acquire waits until nobody else commits over the lane.
func (l *lane) acquire() { l.working <- struct{}{} }

func (l *lane) release() { <-l.working }

// commit commits some creates and tells their callers. It returns those that have time for another batch, if the first
// deadline of this one came too soon.
func (l *lane) commit(ctx context.Context, creates batch) (again batch) {
	begun := time.Now()
	l.crowded.Store(len(creates) > 1)
	bounded, cancel := creates.untilDeadline(ctx, l.leastTime)
	defer cancel()
	err := creates.commit(bounded, l.database, l.keys)
	if watch := l.watcher.Load(); watch != nil {
		(*watch)(len(creates), time.Since(begun))
	}
	creates.note(begun, err)
	if errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrOutcomeUnknown) && creates.hasLate(l.leastTime) {
		creates, again = creates.split(l.leastTime)
	}
	creates.finish(err)
	l.database.Maintain(ctx)
	return again
}

func gaveUp(err error) error { return fmt.Errorf("the caller gave up: %w", err) }

func (b *batcher) enqueue(one *create) error {
	b.mutex.RLock()
	defer b.mutex.RUnlock()
	if b.closed {
		return ErrUnavailable
	}
	select {
	case b.queue <- one:
	default:
		return ErrOverloaded
	}
	// Each lane looks: the first may have to wait for a caller that commits over it.
	for range b.lanes {
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

// run commits batch after batch until the queue is closed and empty, and gives the connection back.
func (l *lane) run() {
	defer close(l.ended)
	// A batch serves several callers, so that no one's context ends it.
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

// nextBatch returns all creates that wait, and waits for one where there is none. A create with the same key as another
// of the batch is held back to the next one, which then finds what became of the first. One that has waited too long is
// refused, so that its deadline does not end the batch of others. The batch is empty once the queue is closed.
func (l *lane) nextBatch(ctx context.Context, held []*create, idle <-chan time.Time) (next batch, hold []*create) {
	keys := map[idempotencyScope]bool{}
	add := func(one *create) {
		scope, hasKey := one.creation.idempotencyScope()
		switch {
		case len(next) == maxBatch, hasKey && keys[scope]:
			hold = append(hold, one)
		case l.claim(one):
			keys[scope] = hasKey
			next = append(next, one)
		}
	}
	for _, one := range held {
		add(one)
	}
	for len(next) < maxBatch && len(hold) < maxBatch {
		one, ended := l.poll()
		switch {
		case one != nil:
			add(one)
		case ended || len(next) > 0:
			return next, hold
		default:
			l.await(ctx, idle)
		}
	}
	return next, hold
}

// claim reports whether a create is for the next batch, and refuses it if it is late.
func (l *lane) claim(one *create) bool {
	if !one.claimed.CompareAndSwap(false, true) {
		return false
	}
	if one.isLate(l.leastTime) {
		batch{one}.finish(errLate)
		return false
	}
	return true
}

// poll returns the next create that waits, or nil. It tells whether there will be none any more.
func (b *batcher) poll() (one *create, ended bool) {
	select {
	case one, ok := <-b.queue:
		return one, !ok
	default:
		return nil, false
	}
}

// await returns once something may be in the queue, or it is closed. Until then, callers may commit over the lane.
func (l *lane) await(ctx context.Context, idle <-chan time.Time) {
	l.release()
	defer l.acquire()
	for {
		select {
		case <-l.wake:
			// Callers that need only the processor to enqueue theirs come along. Where there are none, this returns at once.
			runtime.Gosched()
			return
		case <-idle:
			l.acquire()
			l.database.Maintain(ctx)
			l.release()
		}
	}
}

// close lets no more creates in, and waits until those that wait are stored and the connection is given back. A second
// call returns what the first did.
func (b *batcher) close() error {
	b.mutex.Lock()
	if !b.closed {
		b.closed = true
		close(b.queue)
		close(b.wake)
	}
	b.mutex.Unlock()
	var errs []error
	for _, one := range b.lanes {
		<-one.ended
		errs = append(errs, one.closeError)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end group commit: %w", err)
	}
	return nil
}
