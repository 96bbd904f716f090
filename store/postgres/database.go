package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sync/singleflight"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres/link"
)

const (
	// transactTimeout limits a transaction, retries included: the wait for a writable server, the statements and COMMIT.
	transactTimeout = 5 * time.Second
	// firstPause and maxPause are the shortest and longest pause between retries.
	firstPause = 20 * time.Millisecond
	maxPause   = 200 * time.Millisecond
)

// Database is an open PostgreSQL database.
type Database struct {
	logger        *slog.Logger
	schemaVersion int64
	servers       link.Servers
	writers       database.Pool
	readers       database.Pool
	// mustProve is set by a commit with an unknown outcome and by a failed hint, and cleared when a commit succeeds.
	mustProve atomic.Bool
	// isInsertFailing is set when an insert fails, and cleared by a probe that can insert rows.
	isInsertFailing atomic.Bool
	readiness       readiness
	// columns are the types of the columns that Insert writes.
	columns   map[string]columnType
	preparing singleflight.Group
	// abandonTimeout is the constant of this name, except in tests.
	abandonTimeout time.Duration
}

var _ database.Database = (*Database)(nil)

// IsShared reports true: other replicas use the database too.
func (d *Database) IsShared() bool { return true }

// Reader returns a handle over the pool for reading.
func (d *Database) Reader() *gorm.DB { return d.readers.GORM }

// Stats returns statistics of the connection pools.
func (d *Database) Stats() database.Stats {
	return database.Stats{Readers: d.readers.Stats(), Writers: d.writers.Stats()}
}

// Read runs statements in a transaction whose COMMIT waits for the standbys, so that what they have read is not lost.
func (d *Database) Read(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return unwritten(d.transact(ctx, terms{beginSnapshot, readTimeout, commitTimeout}, statements))
}

// unwritten returns the error of a transaction without rows, whose outcome does not matter.
func unwritten(err error) error {
	if errors.Is(err, database.ErrOutcomeUnknown) {
		return fmt.Errorf("%w: %s", database.ErrUnavailable, err.Error())
	}
	return err
}

// Write runs statements in a transaction. Writes take turns.
func (d *Database) Write(ctx context.Context, statements func(tx *gorm.DB) error) error {
	if err := d.Prepare(ctx); err != nil {
		return err
	}
	return d.transact(ctx, terms{beginStatement, transactTimeout, commitTimeout}, func(tx *gorm.DB) error {
		if err := takeTurn(tx); err != nil {
			return err
		}
		return statements(tx)
	})
}

// takeTurn waits until no other process makes changes other than creates.
func takeTurn(tx *gorm.DB) error {
	return database.Wrap("wait for other changes", tx.Exec("SELECT pg_advisory_xact_lock(7811069)").Error)
}

// CheckSchema returns database.ErrNewer if a later program has migrated the database, so that this one must not use it.
func (d *Database) CheckSchema(tx *gorm.DB) error {
	var level int64
	if err := tx.Raw("SELECT max(oldest_level) FROM schema_support").Scan(&level).Error; err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	return d.checkLevel(level)
}

// terms are how a transaction begins, and how long its statements and its commit may take.
type terms struct {
	begin              string
	statements, commit time.Duration
}

// transact runs statements in a transaction. It retries until COMMIT was sent, or transactTimeout or the context
// expires. If the statements take too long, the next attempt avoids that server.
func (d *Database) transact(ctx context.Context, terms terms, statements func(tx *gorm.DB) error) error {
	ctx, cancel := reserving(ctx, commitTimeout)
	defer cancel()
	return retry(ctx, func() (again bool, err error) { return d.try(ctx, terms, statements) })
}

// reserving returns a context that ends a while before the caller's, or before transactTimeout.
func reserving(ctx context.Context, while time.Duration) (context.Context, context.CancelFunc) {
	limit := transactTimeout
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline))
	}
	return context.WithTimeout(ctx, limit-while)
}

// retry calls try until it reports that another attempt cannot succeed, or until the context ends. It then returns the
// last error as database.ErrUnavailable.
func retry(ctx context.Context, try func() (again bool, err error)) error {
	last := ctx.Err()
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		again, err := try()
		if !again {
			return err
		}
		last = err
		select {
		case <-time.After(pause/2 + rand.N(pause/2)): //nolint:gosec // Jitter needs no secrecy.
		case <-ctx.Done():
		}
	}
	return unavailable(last)
}

// try is one attempt of transact, and reports whether another one may succeed. After COMMIT was sent and its outcome is
// unknown, there must be none.
func (d *Database) try(
	ctx context.Context, terms terms, statements func(tx *gorm.DB) error,
) (again bool, err error) {
	tx, err := d.connection(ctx, d.writers)
	if err != nil {
		return !errors.Is(err, database.ErrNewer), err
	}
	_, err = tx.begin(ctx, terms.begin)
	if err == nil {
		err = tx.run(ctx, d.writers.GORM, terms.statements, statements)
	}
	if err != nil {
		d.fail(ctx, tx, err)
		return isRetryable(err), classify(err)
	}
	if _, err = tx.commit(terms.commit); err == nil || errors.Is(err, database.ErrOutcomeUnknown) {
		return false, err
	}
	tx.release()
	return isRetryable(err), classify(err)
}

// connection returns a connection of a pool. After a commit with an unknown outcome, the server must first prove that
// it commits, because each commit that hangs leaves a connection waiting on the server.
func (d *Database) connection(ctx context.Context, pool database.Pool) (*transaction, error) {
	conn, native, err := connect(ctx, pool.DB)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", unavailable(err))
	}
	tx := &transaction{database: d, conn: conn, native: native, link: link.Of(native.PgConn().Conn())}
	if d.mustProve.Load() {
		return tx, d.prove(ctx, tx)
	}
	return tx, nil
}

// connect returns a connection of a pool, and the driver's own.
func connect(ctx context.Context, pool *sql.DB) (conn *sql.Conn, native *pgx.Conn, err error) {
	if conn, err = pool.Conn(ctx); err == nil {
		err = conn.Raw(func(driver any) error {
			native = driver.(*stdlib.Conn).Conn()
			return nil
		})
	}
	return conn, native, err //nolint:wrapcheck // The caller wraps it.
}

// prove commits a transaction without rows. If that fails, it avoids the server and closes the connection.
func (d *Database) prove(ctx context.Context, tx *transaction) error {
	if _, err := tx.probe(ctx); err != nil {
		if ctx.Err() == nil {
			d.servers.Avoid(tx.link)
		}
		tx.discard()
		return err
	}
	d.servers.Prefer(tx.link)
	d.mustProve.Store(false)
	return nil
}

// fail rolls back, and avoids a server that is read-only or silent, unless the caller's context had expired.
func (d *Database) fail(ctx context.Context, tx *transaction, err error) {
	isSilent := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	if isSilent || errors.Is(err, errReadOnly) || hasCode(err, readOnly) {
		d.servers.Avoid(tx.link)
	}
	tx.rollBack(ctx)
}

// Close waits for running statements, then closes the connections.
func (d *Database) Close() error { return database.ClosePools(d.readers, d.writers) }
