// Package connection opens a SQLite file: what may be opened, the settings of each kind of connection, statements on
// one of them, and what the driver's errors mean. It knows no tables.
//
// Start with Open, then Statements. file.go has what is checked before SQLite opens the file.
package connection

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/mattn/go-sqlite3"
	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

const (
	// BusyTimeout is how long a statement waits for a lock of another program.
	BusyTimeout = 5 * time.Second
	// maxPrepared is how many statements each connection keeps prepared.
	maxPrepared = 64
)

// connector opens connections, unless allow returns an error. A connection that a pool opens again would otherwise
// create a database that was moved away, and SQLite deletes the WAL next to an empty one.
type connector struct {
	sqlite3.SQLiteDriver

	dsn   string
	allow func() error
}

// Connect implements driver.Connector.
func (c *connector) Connect(context.Context) (driver.Conn, error) {
	if err := c.allow(); err != nil {
		return nil, err
	}
	return c.Open(c.dsn) //nolint:wrapcheck // Callers do.
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return &c.SQLiteDriver }

// Open opens a pool for an existing database, whose connections allow permits. Settings are in the DSN, because a
// PRAGMA would reach only one of its connections. synchronous=FULL is explicit because the driver is compiled with
// NORMAL for WAL mode, which can lose commits. SQLite needs no mutexes: database/sql never uses a connection from two
// goroutines simultaneously. The error is that of the driver.
func Open(path, setting string, busy time.Duration, connections int, allow func() error) (database.Pool, error) {
	return poolOf(sql.OpenDB(&connector{dsn: dsn(path, fmt.Sprintf(
		"mode=rw&_journal_mode=WAL&_synchronous=FULL&_busy_timeout=%d&_foreign_keys=on&_mutex=no&_stmt_cache_size=%d&%s",
		busy.Milliseconds(), maxPrepared, setting)), allow: allow}), connections)
}

// OpenImmutable opens a file that no program changes. SQLite takes no locks and creates no files next to it.
func OpenImmutable(path string) (database.Pool, error) {
	return OpenWith(path, "mode=ro&immutable=1&_mutex=no")
}

// OpenReadOnly opens a database that other programs may be writing to. It reads their WAL and creates no wal-index.
func OpenReadOnly(path string) (database.Pool, error) {
	return OpenWith(path, fmt.Sprintf("mode=ro&_query_only=on&readonly_shm=1&_busy_timeout=%d&_mutex=no",
		BusyTimeout.Milliseconds()))
}

// OpenDSN is OpenWith without GORM, and without a limit on connections.
func OpenDSN(path, settings string) (*sql.DB, error) {
	return sql.Open("sqlite3", dsn(path, settings)) //nolint:wrapcheck // Callers do.
}

func dsn(path, settings string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + settings
}

// OpenWith opens a pool of one connection to a database file, with settings of the driver.
func OpenWith(path, settings string) (database.Pool, error) {
	opened, err := OpenDSN(path, settings)
	if err != nil {
		return database.Pool{}, fmt.Errorf("open database: %w", err)
	}
	return poolOf(opened, 1)
}

func poolOf(opened *sql.DB, connections int) (pool database.Pool, err error) {
	pool.DB = opened
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	pool.GORM, err = database.OpenGORM(gormsqlite.Dialector{Conn: pool.DB}, Classify)
	if err != nil {
		return pool, errors.Join(err, pool.Close())
	}
	return pool, nil
}

// ReadGeneration reads the generation of a database, from the WAL if the page is there. It is the user_version, which
// SQLite stores at a fixed offset in the database header. Each transaction that resets the WAL increments it, so that
// an older copy of the file can be distinguished from the current one.
func ReadGeneration(ctx context.Context, db gorm.ConnPool) (uint32, error) {
	var version int32
	err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	//nolint:gosec // Only the bits matter.
	return uint32(version), database.Wrap("read the generation of the database", Classify(err))
}

// SetGeneration writes the generation. SQLite reads and writes user_version as a signed number.
func SetGeneration(ctx context.Context, db gorm.ConnPool, generation uint32) error {
	//nolint:gosec // Only the bits matter.
	_, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", int32(generation)))
	return database.Wrap("write the generation of the database", Classify(err))
}

// IncrementGeneration increments the generation. It must be called before the transaction writes anything else.
func IncrementGeneration(ctx context.Context, tx gorm.ConnPool) error {
	generation, err := ReadGeneration(ctx, tx)
	if err != nil {
		return err
	}
	return SetGeneration(ctx, tx, generation+1)
}

// Statements runs statements on one connection and prepares each text once. It uses the driver, because database/sql
// would convert and copy each value. Calls wait for each other. Its errors are those of the driver.
type Statements struct {
	// Conn is nil before it is opened.
	Conn     *sql.Conn
	prepared map[string]*sqlite3.SQLiteStmt
}

// Exec runs a statement that returns no rows.
func (s *Statements) Exec(ctx context.Context, text string) error { return s.Query(ctx, text, nil) }

// Query calls each for each row that a statement returns. The context should have no end: with one that can end, the
// driver starts a goroutine for each statement.
func (s *Statements) Query(
	ctx context.Context, text string, each func(row []driver.Value) error, values ...driver.NamedValue,
) error {
	return s.Conn.Raw(func(native any) error { //nolint:wrapcheck // Callers do.
		if s.prepared == nil {
			s.prepared = map[string]*sqlite3.SQLiteStmt{}
		}
		if s.prepared[text] == nil {
			prepared, err := native.(*sqlite3.SQLiteConn).PrepareContext(ctx, text)
			if err != nil {
				return err //nolint:wrapcheck // Callers do.
			}
			s.prepared[text] = prepared.(*sqlite3.SQLiteStmt)
		}
		rows, err := s.prepared[text].QueryContext(ctx, values)
		if err != nil {
			return err //nolint:wrapcheck // Callers do.
		}
		row := make([]driver.Value, len(rows.Columns()))
		for err == nil {
			if err = rows.Next(row); err == nil {
				err = each(row)
			}
		}
		// After an error, Close repeats it.
		if closeErr := rows.Close(); errors.Is(err, io.EOF) {
			err = closeErr
		}
		return err
	})
}

// Close closes the statements and the connection.
func (s *Statements) Close() error {
	errs := []error{s.Conn.Raw(func(any) (err error) {
		for _, statement := range s.prepared {
			err = errors.Join(err, statement.Close())
		}
		return err
	}), s.Conn.Close()}
	return database.Wrap("disconnect", errors.Join(errs...))
}

// Classify wraps an error of the driver in the matching error of package database. It leaves the others as they are: a
// constraint violation, whose meaning depends on the statement, or an error of this program.
func Classify(err error) error {
	native, ok := errors.AsType[sqlite3.Error](err)
	if !ok || errors.Is(err, database.ErrUnavailable) {
		return err
	}
	sentinel, remedy := database.ErrUnavailable, ""
	// The driver's backup returns extended codes, whose low byte is the primary one.
	const primary = 0xff
	switch native.Code & primary {
	case sqlite3.ErrNotADB, sqlite3.ErrCorrupt:
		sentinel = database.ErrCorrupt
	case sqlite3.ErrFull:
		sentinel = database.ErrFull
	case sqlite3.ErrPerm, sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrNomem, sqlite3.ErrIoErr, sqlite3.ErrCantOpen,
		sqlite3.ErrProtocol:
	case sqlite3.ErrReadonly:
		remedy = "; make the file and its directory writable for this user, or copy the file to a directory of its own"
	default:
		return err
	}
	return fmt.Errorf("%w: %w%s", sentinel, err, remedy)
}

// CommitError classifies the error of a COMMIT. After an I/O error, the transaction may or may not be stored.
func CommitError(err error) error {
	if native, ok := errors.AsType[sqlite3.Error](err); ok && native.Code == sqlite3.ErrIoErr {
		return fmt.Errorf("%w: %w", database.ErrOutcomeUnknown, err)
	}
	return Classify(err)
}

// InsertError classifies the error of an INSERT: database.ErrInsertApart if a row caused it, as by a constraint.
func InsertError(err error) error {
	if native, ok := errors.AsType[sqlite3.Error](err); ok &&
		slices.Contains([]sqlite3.ErrNo{sqlite3.ErrConstraint, sqlite3.ErrTooBig, sqlite3.ErrMismatch}, native.Code) {
		return fmt.Errorf("%w: %w", database.ErrInsertApart, err)
	}
	return Classify(err)
}

// CopyWAL runs a checkpoint in one of SQLite's modes, and reports whether other connections kept it from completing.
func CopyWAL(ctx context.Context, conn gorm.ConnPool, mode string) (isBusy bool, err error) {
	var frames, copied int
	err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&isBusy, &frames, &copied)
	return isBusy, database.Wrap("checkpoint", Classify(err))
}
