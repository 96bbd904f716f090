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
	// beginTimeout is how long a server may take to begin a transaction. One that is frozen takes for ever.
	beginTimeout = time.Second
	// batchTimeout is how long a server may take for the statements of a batch, one of which may wait for a lock.
	batchTimeout = lockTimeout + 500*time.Millisecond
	// lockTimeout stands in secureStatement, too.
	lockTimeout = 2 * time.Second
	// commitTimeout is how long a commit may take. A synchronous standby that is away lets it hang.
	commitTimeout = time.Second
	// abandonTimeout is how long a commit without an answer keeps its connection after its callers were told that the
	// outcome is unknown.
	abandonTimeout = 30 * time.Second
)

// changeLock lets changes other than creates take turns, in whatever process.
const changeLock = `SELECT pg_advisory_xact_lock(7811069)`

// transaction is one transaction on a connection of its own.
type transaction struct {
	conn *sql.Conn
	// link is the network connection to the server.
	link   *watchedConn
	server net.Addr
	// reserved are pks that nobody else gets, and that are not yet given away.
	reserved []int64
	// tx is what GORM runs statements with.
	tx *gorm.DB
}

func newTransaction(conn *sql.Conn) (*transaction, error) {
	t := &transaction{conn: conn}
	err := t.raw(func(conn *pgx.Conn) error {
		t.link, t.server = watchedConnOf(conn.PgConn()), conn.PgConn().Conn().RemoteAddr()
		return nil
	})
	return t, err
}

// run runs the statements. A panic in them is an error, because the callers of a batch are not to fall with each other.
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

// commit returns nil where the transaction is stored, and where it is not the error of the server. Where that is not
// known, it returns database.ErrOutcomeUnknown, and the connection is used up.
//
// The commit is not cancelled with any context: a server that waits for its standbys would then keep the transaction
// without them. If it takes too long, the connection is left to it, and closed if the server still does not answer.
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
		return fmt.Errorf("%w: no answer to COMMIT within %v", database.ErrOutcomeUnknown, commitTimeout)
	}
}

// sendCommit tells what is stored, what is not, and what is unknown: of what the driver says of it (SafeToRetry,
// driver.ErrBadConn), nothing holds for a COMMIT. An error without the severity that is never translated comes from a
// pooler, which does not know the outcome.
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

// rollBack ends a transaction that failed.
func (t *transaction) rollBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	err := t.raw(func(conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, "ROLLBACK").ReadAll()
		return err //nolint:wrapcheck // Only whether there is one counts.
	})
	if err != nil {
		t.discard()
		return
	}
	_ = t.conn.Close()
}

// send sends statements in one message, and handles their results.
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

// discard closes the connection, instead of giving it back.
func (t *transaction) discard() {
	_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = t.conn.Close()
}
