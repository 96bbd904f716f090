package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres/link"
)

const (
	// beginTimeout limits how long a server may take to begin, to roll back, or to commit without rows.
	beginTimeout = time.Second
	// readTimeout limits the statements of a transaction that reads, one of which may wait for a lock.
	readTimeout = lockTimeout + 500*time.Millisecond
	// lockTimeout must match secureStatement.
	lockTimeout = 2 * time.Second
	// commitTimeout limits a commit, which hangs if a synchronous standby is unavailable.
	commitTimeout = time.Second
	// abandonTimeout is how long a commit without a response keeps its connection once it was reported as unknown.
	abandonTimeout = 30 * time.Second
)

const (
	// beginStatement sets the level of isolation, because the role or the database may have another default. At a higher
	// level, a statement would not see what was committed while it waited for a lock.
	beginStatement = "BEGIN ISOLATION LEVEL READ COMMITTED"
	// beginSnapshot is beginStatement for a transaction that only reads.
	beginSnapshot   = "BEGIN ISOLATION LEVEL REPEATABLE READ"
	commitStatement = "COMMIT"
)

// secureSettings makes COMMIT wait until the transaction is on the disks of this server and its synchronous standbys,
// or visible on them if the role or the database asks for that. It makes the server warn if a standby lacks it.
const secureSettings = `set_config('synchronous_commit',
		CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true),
	set_config('client_min_messages', 'warning', true)`

// secureStatement begins a transaction with secureSettings. The message of pg_logical_emit_message makes read-only
// transactions wait too, so that no response is based on a row that could still be lost.
const secureStatement = `SELECT (SELECT max(oldest_level) FROM schema_support),
	current_setting('transaction_read_only'), ` + unsafeSettings + `, ` + secureSettings + `,
	set_config('lock_timeout', '2s', true), set_config('idle_in_transaction_session_timeout', '10s', true),
	pg_logical_emit_message(true, 'providerd', '')::text`

// transaction is one transaction on a connection of its own.
type transaction struct {
	database *Database
	conn     *sql.Conn
	native   *pgx.Conn
	link     *link.Link
}

// begin begins the transaction, and runs more statements. It returns database.ErrUnavailable if that fails.
func (t *transaction) begin(
	ctx context.Context, begin string, more ...statement,
) (results []*pgconn.Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	results, err = t.exchange(ctx, append([]statement{{text: begin}, {text: secureStatement}}, more...)...)
	if err == nil {
		err = t.checkServer(results[1])
	}
	if err != nil {
		return nil, fmt.Errorf("begin: %w", unavailable(err))
	}
	return results[2:], nil
}

// probe commits a transaction that runs statements without writing rows, and travels in one message. It returns
// database.ErrUnavailable if that fails or takes too long.
func (t *transaction) probe(ctx context.Context, statements ...statement) (results []*pgconn.Result, err error) {
	results, err = t.begin(ctx, beginStatement, append(statements, statement{text: commitStatement})...)
	if err == nil && t.link.Warning != nil {
		err = fmt.Errorf("commit: %w", unavailable(t.link.Warning))
	}
	return results, err
}

// checkServer checks the result of secureStatement: the server must accept writes and be safe, and this program must
// support the schema. It returns database.ErrUnavailable, ErrUnsafe or ErrNewer.
func (t *transaction) checkServer(result *pgconn.Result) error {
	row := result.Rows[0]
	if string(row[1]) == "on" {
		return errReadOnly
	}
	if text := string(row[2]); text != "" {
		return fmt.Errorf("%w: %s", database.ErrUnsafe, text)
	}
	level, err := strconv.ParseInt(string(row[0]), 10, 64)
	if err != nil {
		return fmt.Errorf("read table schema_support: %w", err)
	}
	return t.database.checkLevel(level)
}

// checkLevel checks the lowest schema version of a program that can use the database.
func (d *Database) checkLevel(lowest int64) error {
	if lowest <= d.schemaVersion {
		return nil
	}
	return fmt.Errorf(
		"%w: %w: its schema requires a program that supports version %d; this one supports up to %d; use a newer providerd",
		database.ErrUnavailable, database.ErrNewer, lowest, d.schemaVersion)
}

// run runs the statements. A panic in them becomes an error, so that one caller's does not end the program.
func (t *transaction) run(
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

// commit sends statements and COMMIT, and waits for their results until the limit. It returns the error of the server
// if the transaction is not stored, and database.ErrOutcomeUnknown if that is not known. Unless the server refused it,
// the connection is released.
//
// No context cancels what was sent: a server that waits for its standbys would then commit without them. If it takes
// too long, it keeps its connection in the background, until the server responds or abandonTimeout has passed.
func (t *transaction) commit(limit time.Duration, statements ...statement) ([]*pgconn.Result, error) {
	var results []*pgconn.Result
	var err error
	ended := make(chan struct{})
	abandonment := time.AfterFunc(limit+t.database.abandonTimeout, t.link.Abandon)
	go func() {
		results, err = t.sendCommit(statements)
		abandonment.Stop()
		close(ended)
	}()
	select {
	case <-ended:
		switch {
		case err == nil:
			t.database.servers.Prefer(t.link)
			t.release()
		case errors.Is(err, database.ErrOutcomeUnknown):
			t.database.noteUnknownCommit(t)
			t.discard()
		}
		return results, err
	case <-time.After(limit):
		t.database.noteUnknownCommit(t)
		go func() {
			<-ended
			t.discard()
		}()
		return nil, fmt.Errorf("%w: no response within %v", database.ErrOutcomeUnknown, limit)
	}
}

// sendCommit is commit without a limit. The hints of the driver (SafeToRetry, driver.ErrBadConn) do not hold for a
// commit. An error without the untranslated severity comes from a pooler, which does not know the outcome.
func (t *transaction) sendCommit(statements []statement) ([]*pgconn.Result, error) {
	results, err := t.exchange(context.Background(), append(statements, statement{text: commitStatement})...)
	native, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && native.SeverityUnlocalized == "ERROR", errors.Is(err, errNotSent):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", database.ErrOutcomeUnknown, err)
	}
	if err := t.link.Warning; err != nil {
		return nil, fmt.Errorf("%w: %w", database.ErrOutcomeUnknown, err)
	}
	if results[len(results)-1].CommandTag.String() != commitStatement {
		return nil, fmt.Errorf("%w: the server rolled the transaction back", database.ErrUnavailable)
	}
	return results, nil
}

// noteUnknownCommit avoids a server that failed or did not respond during COMMIT.
func (d *Database) noteUnknownCommit(tx *transaction) {
	d.mustProve.Store(true)
	d.servers.Avoid(tx.link)
}

// rollBack rolls the transaction back and releases the connection.
func (t *transaction) rollBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beginTimeout)
	defer cancel()
	if _, err := t.exchange(ctx, statement{text: "ROLLBACK"}); err != nil {
		t.discard()
		return
	}
	t.release()
}

// release returns the connection to the pool.
func (t *transaction) release() { _ = t.conn.Close() }

// discard closes the connection instead of returning it to the pool.
func (t *transaction) discard() {
	_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = t.conn.Close()
}

// statement is a statement of an exchange, with its values in binary.
type statement struct {
	text   string
	values [][]byte
}

// errNotSent means that the server cannot have received all statements.
var errNotSent = fmt.Errorf("%w: connection lost", database.ErrUnavailable)

// exchange sends statements in one message and returns their results, as text. After one that fails, none runs. Each is
// parsed only once those before it have run: parsing waits for locks, for as long as the lock_timeout that an earlier
// statement set. Only a warning of the last statement is kept.
func (t *transaction) exchange(ctx context.Context, statements ...statement) (results []*pgconn.Result, err error) {
	prepared := t.link.Prepared
	pipeline := t.native.PgConn().StartPipeline(ctx)
	added := queue(pipeline, prepared, statements)
	if err := pipeline.Sync(); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	for err == nil && len(results) < len(statements) {
		var found any
		t.link.Warning = nil
		found, err = pipeline.GetResults()
		switch found := found.(type) {
		case *pgconn.StatementDescription:
			prepared[added[0]] = nameOf(len(prepared))
			added = added[1:]
		case *pgconn.ResultReader:
			result := found.Read()
			results, err = append(results, result), result.Err
		case *pgconn.PipelineSync:
			err = fmt.Errorf("the server ran %d of %d statements", len(results), len(statements))
		}
	}
	return results, cmp.Or(err, pipeline.Close()) //nolint:wrapcheck // The caller wraps it.
}

// queue adds statements to a pipeline, and returns the texts of the statements that must be prepared. prepared has the
// names of the statements that the connection has prepared, by text; nil to prepare none.
func queue(pipeline *pgconn.Pipeline, prepared map[string]string, statements []statement) (added []string) {
	binary := []int16{pgtype.BinaryFormatCode}
	for _, s := range statements {
		if prepared == nil {
			pipeline.SendQueryParams(s.text, s.values, nil, binary, nil)
			continue
		}
		name, ok := prepared[s.text]
		if !ok {
			name = nameOf(len(prepared) + len(added))
			added = append(added, s.text)
			pipeline.SendPrepare(name, s.text, nil)
		}
		pipeline.SendQueryPrepared(name, s.values, binary, nil)
	}
	return added
}

// nameOf returns the name of a prepared statement.
func nameOf(number int) string { return fmt.Sprint("providerd", number) }
