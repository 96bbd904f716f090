package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

const (
	// queueLength is how many creates may wait. More would only wait longer than their callers do.
	queueLength = 512
	// maxBatch is how many creates share a transaction.
	maxBatch = 256
	// sharedLanes is how many batches are on their way at a time to a database that replicas share: while one waits for
	// its commit, the next one is sent.
	sharedLanes = 2
	// maintenanceInterval is how often the database is maintained while no create comes.
	maintenanceInterval = 5 * time.Second
)

// batcher commits all creates that wait in one transaction (group commit). It never waits for company: a lone create
// commits at once.
type batcher struct {
	keys  keySource
	queue chan *create
	// mutex lets no create enter once the queue is closed.
	mutex  sync.RWMutex
	closed bool
	lanes  []*lane
}

// keySource gives the keys to seal with.
type keySource func(ctx context.Context) (*seal.Keys, error)

// lane commits one batch after the other.
type lane struct {
	*batcher
	database database.Batches
	// closeError is valid once ended is closed.
	closeError error
	ended      chan struct{}
}

// startBatcher connects a batcher and lets it run.
func startBatcher(ctx context.Context, db database.Database, keys keySource) (*batcher, error) {
	b := &batcher{keys: keys, queue: make(chan *create, queueLength)}
	lanes := 1
	if db.IsShared() {
		lanes = sharedLanes
	}
	for range lanes {
		batches, err := db.Batches(ctx)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start group commit: %w", err), b.close())
		}
		one := &lane{batcher: b, database: batches, ended: make(chan struct{})}
		b.lanes = append(b.lanes, one)
		go one.run() //nolint:gosec // The batcher outlives the context that it was started in.
	}
	return b, nil
}

// submit queues a create and waits for its outcome. A create whose caller gives up before its batch begins is left out;
// one whose caller gives up later may be stored.
func (b *batcher) submit(ctx context.Context, one *create) error {
	if err := ctx.Err(); err != nil {
		return gaveUp(err)
	}
	one.done = make(chan struct{})
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

func gaveUp(err error) error { return fmt.Errorf("the caller gave up: %w", err) }

func (b *batcher) enqueue(one *create) error {
	b.mutex.RLock()
	defer b.mutex.RUnlock()
	if b.closed {
		return ErrUnavailable
	}
	select {
	case b.queue <- one:
		return nil
	default:
		return ErrOverloaded
	}
}

// run commits batch after batch until the queue is closed and empty, and gives the connection back.
func (l *lane) run() {
	defer close(l.ended)
	// A batch serves several callers, so that no one's context ends it.
	ctx := context.Background()
	idle := time.NewTicker(maintenanceInterval)
	defer idle.Stop()
	var held []*create
	for {
		var next batch
		next, held = l.nextBatch(ctx, held, idle.C)
		if len(next) == 0 {
			l.closeError = l.database.Close()
			return
		}
		next.finish(next.commit(ctx, l.database, l.keys))
		l.database.Maintain(ctx)
	}
}

// nextBatch returns all creates that wait, and waits for one where there is none. A create with the same key as another
// of the batch is held back to the next one, which then finds what became of the first. The batch is empty once the
// queue is closed.
func (l *lane) nextBatch(ctx context.Context, held []*create, idle <-chan time.Time) (next batch, hold []*create) {
	keys := map[idempotencyScope]bool{}
	add := func(one *create) {
		scope, hasKey := one.creation.idempotencyScope()
		switch {
		case hasKey && keys[scope]:
			hold = append(hold, one)
		case one.claimed.CompareAndSwap(false, true):
			keys[scope] = hasKey
			next = append(next, one)
		}
	}
	for _, one := range held {
		add(one)
	}
	for len(next) < maxBatch && len(hold) < maxBatch {
		one := l.poll()
		if one == nil && len(next) == 0 {
			one = l.await(ctx, idle)
		}
		if one == nil {
			break
		}
		add(one)
	}
	return next, hold
}

// poll returns the next create that waits, or nil.
func (b *batcher) poll() *create {
	select {
	case one := <-b.queue:
		return one
	default:
		return nil
	}
}

// await returns the next create once there is one. It returns nil once the queue is closed.
func (l *lane) await(ctx context.Context, idle <-chan time.Time) *create {
	for {
		select {
		case one := <-l.queue:
			// Callers that need only the processor to enqueue theirs come along. Where there are none, this returns at once.
			runtime.Gosched()
			return one
		case <-idle:
			l.database.Maintain(ctx)
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
