package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
)

const (
	// queueLength is how many creates may wait. More would only wait longer than their callers do.
	queueLength = 512
	// maxBatch is how many creates share a transaction.
	maxBatch = 256
	// idleInterval is how often the WAL is looked at while no create comes.
	idleInterval = 5 * time.Second
)

// create is one create on its way to the disk.
type create struct {
	audit Audit
	// digest is that of the body; nil without a key.
	digest []byte
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
	db          *gorm.DB
	connection  *connection
	files       *guard
	keyring     *keyring
	checkpoints *checkpointer
	queue       chan *create
	// failed is set while the database took nothing of the last batch.
	failed atomic.Bool
	// mutex lets no create enter once the queue is closed.
	mutex  sync.RWMutex
	closed bool
	ended  chan struct{}
}

// startWriter takes a connection of the pool for good.
func startWriter(
	ctx context.Context, pool *gorm.DB, files *guard, keyring *keyring, logger *slog.Logger,
) (*writer, error) {
	db, err := pool.DB()
	if err != nil {
		return nil, fmt.Errorf("connect the writer: %w", err)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect the writer: %w", classify(err))
	}
	w := &writer{
		connection: &connection{conn: conn, statements: map[string]*sql.Stmt{}},
		files:      files,
		keyring:    keyring,
		queue:      make(chan *create, queueLength),
		ended:      make(chan struct{}),
	}
	if w.db, err = gorm.Open(sqlite.New(sqlite.Config{Conn: w.connection}), gormConfig()); err != nil {
		return nil, errors.Join(fmt.Errorf("connect the writer: %w", classify(err)), w.connection.close())
	}
	if err := w.connection.tune(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect the writer: %w", classify(err)), w.connection.close())
	}
	if w.checkpoints, err = newCheckpointer(ctx, db, w.connection, files, logger); err != nil {
		return nil, errors.Join(err, w.connection.close())
	}
	go w.run() //nolint:gosec // The writer outlives the context that it was started in.
	return w, nil
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
	idle := time.NewTicker(idleInterval)
	defer idle.Stop()
	var held []*create
	for {
		var next batch
		next, held = w.nextBatch(ctx, held, idle.C)
		if len(next.creates) == 0 {
			return
		}
		index, err := w.commit(ctx, next)
		w.failed.Store(errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOutcomeUnknown))
		next.finish(err)
		if err == nil {
			w.checkpoints.committed(ctx, index)
		}
	}
}

// commit stores a batch between two looks at the files, and returns the state of the WAL after it.
func (w *writer) commit(ctx context.Context, next batch) (walIndex, error) {
	if err := w.files.check(); err != nil {
		return walIndex{}, err
	}
	if err := next.commit(ctx, w); err != nil {
		return walIndex{}, err
	}
	index, err := w.files.look()
	if err != nil {
		return walIndex{}, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return index, nil
}

// nextBatch waits for a create and takes all that wait with it. A create with the same key as another of the batch is
// held back to the next one, which then finds what became of the first. The batch is empty once the queue is closed.
func (w *writer) nextBatch(ctx context.Context, held []*create, idle <-chan time.Time) (next batch, hold []*create) {
	keys := map[idempotencyScope]bool{}
	add := func(one *create) {
		scope, hasKey := one.audit.idempotencyScope()
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
		one := w.take()
		if one == nil && len(next.creates) == 0 {
			one = w.await(ctx, idle)
		}
		if one == nil {
			break
		}
		add(one)
	}
	return next, hold
}

// take returns the next create that waits and whose caller has not given up, or nil.
func (w *writer) take() *create {
	for {
		select {
		case one := <-w.queue:
			if one == nil || one.taken.CompareAndSwap(false, true) {
				return one
			}
		default:
			return nil
		}
	}
}

// await returns the next create once there is one, or nil once the queue is closed.
func (w *writer) await(ctx context.Context, idle <-chan time.Time) *create {
	for {
		select {
		case one := <-w.queue:
			// Callers that need only the processor to enqueue theirs come along. Where there are none, this returns at once.
			runtime.Gosched()
			if one == nil || one.taken.CompareAndSwap(false, true) {
				return one
			}
		case <-idle:
			if index, err := w.files.look(); err == nil {
				w.checkpoints.idle(ctx, index)
			}
		}
	}
}

// close lets no more creates in, waits until those that wait are stored, and gives the connection back.
func (w *writer) close() error {
	w.mutex.Lock()
	if !w.closed {
		w.closed = true
		close(w.queue)
	}
	w.mutex.Unlock()
	<-w.ended
	if err := w.checkpoints.close(); err != nil {
		return err
	}
	if err := w.connection.close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		return fmt.Errorf("close the writer: %w", err)
	}
	return nil
}
