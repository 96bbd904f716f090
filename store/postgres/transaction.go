package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

const (
	// beginTimeout limits how long a server may take to begin a transaction. A frozen one takes forever.
	beginTimeout = time.Second
	// batchTimeout limits the statements of a batch, one of which may wait for a lock.
	batchTimeout = lockTimeout + 500*time.Millisecond
	// lockTimeout must match secureStatement.
	lockTimeout = 2 * time.Second
	// commitTimeout limits a commit, which hangs if a synchronous standby is unavailable.
	commitTimeout = time.Second
	// abandonTimeout is how long a commit without a response keeps its connection after its callers were told that its
	// outcome is unknown.
	abandonTimeout = 30 * time.Second
)

// changeLock makes changes other than creates take turns, across all processes.
const changeLock = `SELECT pg_advisory_xact_lock(7811069)`

// transaction is one transaction on a connection of its own.
type transaction struct {
	conn   *sql.Conn
	link   *watchedConn
	server net.Addr
	// schemaVersion is that of this program.
	schemaVersion int64
	// reserved are pks that the transaction has reserved and not yet used.
	reserved []int64
	// keysetVersion is that of the keyset when the transaction of a batch began.
	keysetVersion []byte
	tx            *gorm.DB
}

func newTransaction(conn *sql.Conn, schemaVersion int64) (*transaction, error) {
	t := &transaction{conn: conn, schemaVersion: schemaVersion}
	err := t.raw(func(conn *pgx.Conn) error {
		t.link, t.server = watchedConnOf(conn.PgConn()), conn.PgConn().Conn().RemoteAddr()
		return nil
	})
	return t, err
}

// run runs the statements. It returns a panic in them as an error, so that one caller's panic does not fail the whole
// batch.
func (t *transaction) run(
	ctx context.Context, db *gorm.DB, limit time.Duration, statements func(*transaction) error,
) (err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic in a transaction: %v\n%s", value, debug.Stack())
		}
	}()
	t.tx = db.Session(&gorm.Session{NewDB: true, Context: ctx})
	t.tx.Statement.ConnPool = t.conn
	return statements(t)
}

// commit commits the transaction. It returns the error of the server if the transaction is not stored, and
// database.ErrOutcomeUnknown if that is not known; the connection is then no longer usable.
//
// No context cancels the commit: a server that waits for its standbys would then commit without them. A commit that
// takes too long keeps its connection in the background, until the server responds or abandonTimeout has passed.
func (t *transaction) commit(abandonTimeout time.Duration) error {
	committed, gaveUp := make(chan error), make(chan struct{})
	abandonment := time.AfterFunc(commitTimeout+abandonTimeout, t.link.abandon)
	go func() {
		err := t.raw(sendCommit)
		abandonment.Stop()
		select {
		case committed <- err:
		case <-gaveUp:
			t.discard()
		}
	}()
	timeout := time.NewTimer(commitTimeout)
	defer timeout.Stop()
	select {
	case err := <-committed:
		if errors.Is(err, database.ErrOutcomeUnknown) {
			t.discard()
		}
		return err
	case <-timeout.C:
		close(gaveUp)
		return fmt.Errorf("%w: no response to COMMIT within %v", database.ErrOutcomeUnknown, commitTimeout)
	}
}

// sendCommit sends COMMIT and returns nil if the transaction is stored, the server's error if it is not, and
// database.ErrOutcomeUnknown otherwise. The hints of the driver (SafeToRetry, driver.ErrBadConn) do not hold for
// COMMIT. An error without the untranslated severity comes from a pooler, which does not know the outcome.
func sendCommit(conn *pgx.Conn) error {
	_ = takeNotice(conn.PgConn())
	results, err := conn.PgConn().Exec(context.Background(), "COMMIT").ReadAll()
	if native, ok := errors.AsType[*pgconn.PgError](err); ok && native.SeverityUnlocalized == "ERROR" {
		return fmt.Errorf("commit: %w", err)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", database.ErrOutcomeUnknown, err)
	}
	if notice := takeNotice(conn.PgConn()); notice != nil {
		return fmt.Errorf("%w: %w", database.ErrOutcomeUnknown, notice)
	}
	if len(results) != 1 || results[0].CommandTag.String() != "COMMIT" {
		return fmt.Errorf("%w: the server rolled the transaction back", database.ErrUnavailable)
	}
	return nil
}

// rollBack rolls the transaction back and releases the connection.
func (t *transaction) rollBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	err := t.raw(func(conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, "ROLLBACK").ReadAll()
		return err //nolint:wrapcheck // The caller only checks for nil.
	})
	if err != nil {
		t.discard()
		return
	}
	_ = t.conn.Close()
}

// send sends statements in one message and reads their results.
func (t *transaction) send(ctx context.Context, pipeline *pgx.Batch) error {
	return t.raw(func(conn *pgx.Conn) error { return classify(conn.SendBatch(ctx, pipeline).Close()) })
}

func (t *transaction) raw(do func(conn *pgx.Conn) error) error { return raw(t.conn, do) }

// raw gives access to the driver's own connection.
func raw(conn *sql.Conn, do func(conn *pgx.Conn) error) error {
	return conn.Raw(func(native any) error { //nolint:wrapcheck // It is the error of do.
		return do(native.(*stdlib.Conn).Conn())
	})
}

// discard closes the connection instead of returning it to the pool.
func (t *transaction) discard() {
	_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = t.conn.Close()
}
