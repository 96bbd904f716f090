package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"
)

const (
	// queueLength is how many creates may wait. More would only wait longer than their callers do.
	queueLength = 512
	// maxBatch is how many creates share a transaction.
	maxBatch = 256
)

// create is one create on its way to the disk.
type create struct {
	common Provider
	// settings is an *OAuth2Settings or a *WorkspaceDirectorySettings.
	settings any
	// taken is set by whoever is first: the writer that begins with it, or the caller that gives up.
	taken atomic.Bool
	done  chan struct{}
	// replays is the pk of the record that the key made before, or 0; err is why nothing is stored. Both are valid once
	// done is closed.
	replays int32
	err     error
}

// writer takes all creates that wait into one transaction (group commit). It never waits for company: a lone create
// commits at once.
type writer struct {
	db    *gorm.DB
	files *guard
	queue chan *create
	// mutex lets no create enter once the queue is closed.
	mutex  sync.RWMutex
	closed bool
	ended  chan struct{}
}

func startWriter(db *gorm.DB, files *guard, length int) *writer {
	w := &writer{db: db, files: files, queue: make(chan *create, length), ended: make(chan struct{})}
	go w.run()
	return w
}

// submit queues a create and waits for its outcome. A create whose caller gives up before its batch begins is left out;
// one whose caller gives up later may be stored.
func (w *writer) submit(ctx context.Context, one *create) error {
	if err := ctx.Err(); err != nil {
		return gaveUp(err)
	}
	one.done = make(chan struct{})
	if err := w.enqueue(one); err != nil {
		return err
	}
	select {
	case <-one.done:
	case <-ctx.Done():
		if one.taken.CompareAndSwap(false, true) {
			return gaveUp(ctx.Err())
		}
		<-one.done
	}
	return one.err
}

func gaveUp(err error) error { return fmt.Errorf("the caller gave up: %w", err) }

func (w *writer) enqueue(one *create) error {
	w.mutex.RLock()
	defer w.mutex.RUnlock()
	if w.closed {
		return ErrUnavailable
	}
	select {
	case w.queue <- one:
		return nil
	default:
		return ErrOverloaded
	}
}

// run commits batch after batch until the queue is closed and empty.
func (w *writer) run() {
	defer close(w.ended)
	// A batch serves several callers, so that no one's context ends it.
	ctx := context.Background()
	var held []*create
	for {
		var next batch
		next, held = w.nextBatch(held)
		if len(next.creates) == 0 {
			return
		}
		next.finish(w.commit(ctx, next))
	}
}

func (w *writer) commit(ctx context.Context, next batch) error {
	if err := w.files.check(); err != nil {
		return err
	}
	return next.commit(ctx, w.db)
}

// nextBatch waits for a create and takes all that wait with it. A create with the same key as another of the batch is
// held back to the next one, which then finds what became of the first. The batch is empty once the queue is closed.
func (w *writer) nextBatch(held []*create) (next batch, hold []*create) {
	keys := map[idempotencyScope]bool{}
	add := func(one *create) {
		scope, hasKey := one.common.idempotencyScope()
		if hasKey && keys[scope] {
			hold = append(hold, one)
			return
		}
		keys[scope] = hasKey
		next.creates = append(next.creates, one)
	}
	for _, one := range held {
		add(one)
	}
	for len(next.creates) < maxBatch {
		nothingYet := len(next.creates) == 0
		one := w.take(nothingYet)
		if one == nil {
			break
		}
		add(one)
	}
	return next, hold
}

// take returns the next create whose caller has not given up. It returns nil when the queue is closed, or empty and not
// to be waited for.
func (w *writer) take(wait bool) *create {
	for {
		var one *create
		if wait {
			one = <-w.queue
		} else {
			select {
			case one = <-w.queue:
			default:
			}
		}
		if one == nil || one.taken.CompareAndSwap(false, true) {
			return one
		}
	}
}

// close lets no more creates in and waits until those that wait are stored.
func (w *writer) close() {
	w.mutex.Lock()
	if !w.closed {
		w.closed = true
		close(w.queue)
	}
	w.mutex.Unlock()
	<-w.ended
}
