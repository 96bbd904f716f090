package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"strconv"
	"time"

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
	// lockTimeout stands in beginStatements, too.
	lockTimeout = 2 * time.Second
	// commitTimeout is how long a commit may take. A synchronous standby that is away lets it hang.
	commitTimeout = time.Second
)

// beginStatements begin a transaction in one message. What it commits is on disk here and on the synchronous standbys,
// whatever the role or the database say. The message of pg_logical_emit_message makes a transaction that only reads
// wait for them as well, so that nothing is answered from a row that could still be lost.
const beginStatements = `BEGIN ISOLATION LEVEL READ COMMITTED;
	SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '2s';
	SET LOCAL idle_in_transaction_session_timeout = '10s';
	SELECT pg_logical_emit_message(true, 'providerd', '');
	SELECT oldest_level, current_setting('transaction_read_only') FROM schema_support`

// takeTurn lets changes other than creates take turns, in whatever process.
const takeTurn = `SELECT pg_advisory_xact_lock(7811069)`

// transaction is one transaction on a connection of its own.
type transaction struct {
	conn *sql.Conn
	// server is where the connection leads to.
	server net.Addr
}

func newTransaction(conn *sql.Conn) (transaction, error) {
	t := transaction{conn: conn}
	err := t.raw(func(conn *pgconn.PgConn) error {
		t.server = conn.Conn().RemoteAddr()
		return nil
	})
	return t, err
}

// begin returns database.ErrUnavailable.
func (t transaction) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	return t.raw(func(conn *pgconn.PgConn) error {
		results, err := conn.Exec(ctx, beginStatements).ReadAll()
		if err != nil {
			return fmt.Errorf("begin: %w", unavailable(err))
		}
		return checkSupport(results)
	})
}

// checkSupport looks whether the schema has gone on to one that this program cannot use, and whether the server takes
// changes.
func checkSupport(results []*pgconn.Result) error {
	for _, result := range results {
		if len(result.FieldDescriptions) != 2 || result.FieldDescriptions[0].Name != "oldest_level" {
			continue
		}
		if len(result.Rows) != 1 {
			break
		}
		oldest, err := strconv.ParseInt(string(result.Rows[0][0]), 10, 64)
		if err != nil || oldest > schemaLevel {
			return fmt.Errorf("%w: %w: its schema needs a program of level %d, this one has level %d; upgrade providerd",
				database.ErrUnavailable, database.ErrNewer, oldest, schemaLevel)
		}
		if string(result.Rows[0][1]) == "on" {
			return fmt.Errorf("%w: the server is read-only", database.ErrUnavailable)
		}
		return nil
	}
	return fmt.Errorf("%w: its schema does not tell who may use it", database.ErrUnavailable)
}

// run runs the statements. A panic in them is an error, because the callers of a batch are not to fall with each other.
func (t transaction) run(
	ctx context.Context, db *gorm.DB, limit time.Duration, statements func(tx *gorm.DB) error,
) (err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic in a transaction: %v\n%s", value, debug.Stack())
		}
	}()
	tx := db.Session(&gorm.Session{NewDB: true, Context: ctx})
	tx.Statement.ConnPool = t.conn
	return statements(tx)
}

// commit returns nil where the transaction is stored, and where it is not the error of the server. Where that is not
// known, it returns database.ErrOutcomeUnknown, and the connection is used up.
//
// The commit is not cancelled with any context: a server that waits for its standbys would then keep the transaction
// without them. Where it takes too long, the connection is left to it.
func (t transaction) commit() error {
	committed, gaveUp := make(chan error), make(chan struct{})
	go func() {
		err := t.raw(sendCommit)
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
// driver.ErrBadConn), nothing holds for a COMMIT.
func sendCommit(conn *pgconn.PgConn) error {
	_ = takeWarning(conn)
	results, err := conn.Exec(context.Background(), "COMMIT").ReadAll()
	if native, ok := errors.AsType[*pgconn.PgError](err); ok && native.Severity == "ERROR" {
		return fmt.Errorf("commit: %w", err)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", database.ErrOutcomeUnknown, err)
	}
	if warning := takeWarning(conn); warning != nil {
		return fmt.Errorf("%w: %w", database.ErrOutcomeUnknown, warning)
	}
	if len(results) != 1 || results[0].CommandTag.String() != "COMMIT" {
		return fmt.Errorf("%w: the server rolled the transaction back", database.ErrUnavailable)
	}
	return nil
}

// rollBack ends a transaction that failed.
func (t transaction) rollBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	err := t.raw(func(conn *pgconn.PgConn) error {
		_, err := conn.Exec(ctx, "ROLLBACK").ReadAll()
		return err //nolint:wrapcheck // Only whether there is one counts.
	})
	if err != nil {
		t.discard()
		return
	}
	_ = t.conn.Close()
}

// raw gives access to the driver's own connection.
func (t transaction) raw(do func(conn *pgconn.PgConn) error) error {
	return t.conn.Raw(func(native any) error { //nolint:wrapcheck // It is the error of do.
		return do(native.(*stdlib.Conn).Conn().PgConn())
	})
}

// discard closes the connection, instead of giving it back.
func (t transaction) discard() {
	_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = t.conn.Close()
}
