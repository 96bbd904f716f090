package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

const (
	// transactTimeout is how long a transaction may take in all: the wait for a server that takes it, statements and COMMIT.
	transactTimeout = 5 * time.Second
	// firstPause and maxPause lie between two tries.
	firstPause = 20 * time.Millisecond
	maxPause   = 200 * time.Millisecond
)

// Database is an open PostgreSQL database.
type Database struct {
	logger  *slog.Logger
	servers *servers
	writers database.Pool
	readers database.Pool
	// hasUnknownCommit is set while a commit has hung, and none has succeeded since.
	hasUnknownCommit atomic.Bool
	// isInsertFailing is set while the last batch with rows has failed, and nothing has shown since that rows can be stored.
	isInsertFailing atomic.Bool
	readiness  readiness
	// abandonTimeout is the constant, except in tests.
	abandonTimeout time.Duration
	// close releases the database once.
	close func() error
}

var _ database.Database = (*Database)(nil)

// IsShared tells that other replicas use the database, too.
func (d *Database) IsShared() bool { return true }

// Reader returns a handle over a pool of its own.
func (d *Database) Reader() *gorm.DB { return d.readers.GORM }

// Stats returns figures of the connections.
func (d *Database) Stats() database.Stats {
	return database.Stats{Readers: d.readers.Stats(), Writers: d.writers.Stats()}
}

// Change runs statements in one transaction, which waits for its turn.
func (d *Database) Change(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return d.transact(ctx, transactTimeout, 0, func(t *transaction) error {
		if err := t.tx.Exec(changeLock).Error; err != nil {
			return fmt.Errorf("wait for a turn: %w", err)
		}
		return statements(t.tx)
	})
}

// ChangeAlone is Change with a lock that conflicts with every insertion of providers.
func (d *Database) ChangeAlone(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return d.Change(ctx, func(tx *gorm.DB) error {
		if err := tx.Exec("LOCK TABLE providers IN SHARE MODE").Error; err != nil {
			return fmt.Errorf("wait for creates that are under way: %w", err)
		}
		return statements(tx)
	})
}

// transact runs statements in a transaction, and again until COMMIT was sent, transactTimeout has run out or the deadline of
// the context has come. A server that takes longer for the statements than the limit is left for another one. The
// transaction begins with so many reserved pks.
func (d *Database) transact(
	ctx context.Context, limit time.Duration, pks int, statements func(*transaction) error,
) error {
	deadline := time.Now().Add(transactTimeout)
	if earlier, ok := ctx.Deadline(); ok && earlier.Before(deadline) {
		deadline = earlier
	}
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(-commitTimeout))
	defer cancel()
	return retry(ctx, func() (again bool, err error) { return d.try(ctx, limit, pks, statements) })
}

// retry tries something until it reports that another try is of no use, or until the context ends: the last error is
// then database.ErrUnavailable.
func retry(ctx context.Context, try func() (again bool, err error)) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		if ctx.Err() != nil {
			return unavailable(ctx.Err())
		}
		again, err := try()
		if !again {
			return err
		}
		select {
		case <-time.After(pause/2 + rand.N(pause/2)): //nolint:gosec // It need not be secret.
		case <-ctx.Done():
			return unavailable(err)
		}
	}
}

// try is transact once. It tells whether another try may succeed, of which none is made after COMMIT was sent.
func (d *Database) try(
	ctx context.Context, limit time.Duration, pks int, statements func(*transaction) error,
) (again bool, err error) {
	tx, err := d.begin(ctx, pks)
	if err != nil {
		d.reselectServer(ctx, err)
		return !errors.Is(err, database.ErrNewer), err
	}
	if err := tx.run(ctx, d.writers.GORM, limit, statements); err != nil {
		d.avoidSilent(ctx, tx, err)
		tx.rollBack(ctx)
		return isRetryable(err), classify(err)
	}
	err = tx.commit(d.abandonTimeout)
	if errors.Is(err, database.ErrOutcomeUnknown) {
		d.noteUnknownCommit(tx)
		return false, err
	}
	_ = tx.conn.Close()
	if err == nil {
		d.servers.prefer(tx.server)
	}
	return err != nil && isRetryable(err), classify(err)
}

// begin begins a transaction. Where the outcome of a commit is unknown, the server must first show that it commits:
// each commit that hangs leaves a connection behind, which waits on the server.
func (d *Database) begin(ctx context.Context, pks int) (*transaction, error) {
	tx, err := d.connection(ctx)
	if err != nil {
		return nil, err
	}
	if d.hasUnknownCommit.Load() {
		if err := tx.probe(ctx); err != nil {
			if ctx.Err() == nil {
				d.servers.avoid(tx.server)
			}
			tx.discard()
			return nil, err
		}
		d.hasUnknownCommit.Store(false)
	}
	if err := tx.begin(ctx, pks); err != nil {
		d.avoidSilent(ctx, tx, err)
		tx.discard()
		return nil, err
	}
	return tx, nil
}

func (d *Database) connection(ctx context.Context) (*transaction, error) {
	conn, err := d.writers.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", unavailable(err))
	}
	tx, err := newTransaction(conn)
	if err != nil {
		tx.discard()
		return nil, fmt.Errorf("connect: %w", unavailable(err))
	}
	return tx, nil
}

// noteUnknownCommit passes over a server that did not answer a COMMIT, or died of it.
func (d *Database) noteUnknownCommit(tx *transaction) {
	d.hasUnknownCommit.Store(true)
	d.servers.avoid(tx.server)
	d.reset()
}

// avoidSilent passes over a server that did not answer in time, unless it was the time of the caller that ran out.
func (d *Database) avoidSilent(ctx context.Context, tx *transaction, err error) {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		d.servers.avoid(tx.server)
	}
}

// reselectServer lets the next try find its server anew. If the server only has no connection to spare, those that the
// pool has are worth keeping. If the time of the caller has run out, nothing is known of the server.
func (d *Database) reselectServer(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	d.servers.forget(err)
	if !isOutOfConnections(err) {
		d.reset()
	}
}

// noteBatch notes what became of a batch with rows.
func (d *Database) noteBatch(err error) {
	switch {
	case err == nil:
		d.isInsertFailing.Store(false)
		d.readiness.stored()
	case errors.Is(err, database.ErrUnavailable), errors.Is(err, database.ErrOutcomeUnknown):
		d.isInsertFailing.Store(true)
	}
}

// reset closes the connections that are not in use. A pool would otherwise go on with those to a server that has become
// a standby.
func (d *Database) reset() {
	for _, pool := range []database.Pool{d.writers, d.readers} {
		pool.SetMaxIdleConns(0)
		pool.SetMaxIdleConns(maxReaders)
	}
}

// Batches returns the one who commits batches, which takes a connection for each.
func (d *Database) Batches(context.Context) (database.Batches, error) {
	return batches{database: d, tables: map[reflect.Type]table{}}, nil
}

// Close waits for running statements and closes the connections.
func (d *Database) Close() error { return d.close() }
