package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/mattn/go-sqlite3"
	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

const (
	// maxReaders limits the connections for reading, each of which has a page cache. One is for Find.
	maxReaders = 5
	// maxWriters is one connection for batches and one for checkpoints.
	maxWriters = 2
	// busyTimeout is how long a statement waits for a lock of another program.
	busyTimeout = 5 * time.Second
	// maxPrepared is how many statements each connection keeps prepared.
	maxPrepared = 64
	// busyRound is how long SQLite waits in each of the attempts of untilLocked.
	busyRound = 20 * time.Millisecond
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

// connect opens a pool for an existing database, whose connections allow permits. Settings are in the DSN, because a
// PRAGMA would reach only one of its connections. synchronous=FULL is explicit because the driver is compiled with
// NORMAL for WAL mode, which can lose commits. SQLite needs no mutexes: database/sql never uses a connection from two
// goroutines simultaneously.
func connect(path, setting string, busy time.Duration, connections int, allow func() error) (database.Pool, error) {
	return poolOf(sql.OpenDB(&connector{dsn: dsn(path, fmt.Sprintf(
		"mode=rw&_journal_mode=WAL&_synchronous=FULL&_busy_timeout=%d&_foreign_keys=on&_mutex=no&_stmt_cache_size=%d&%s",
		busy.Milliseconds(), maxPrepared, setting)), allow: allow}), connections)
}

// connectImmutable opens a file that no program changes. SQLite takes no locks and creates no files next to it.
func connectImmutable(path string) (database.Pool, error) {
	return connectWith(path, "mode=ro&immutable=1&_mutex=no")
}

// connectReadOnly opens a database that other programs may be writing to. It reads their WAL and creates no wal-index.
func connectReadOnly(path string) (database.Pool, error) {
	return connectWith(path, fmt.Sprintf("mode=ro&_query_only=on&readonly_shm=1&_busy_timeout=%d&_mutex=no",
		busyTimeout.Milliseconds()))
}

// openDSN opens a database file with settings of the driver.
func openDSN(path, settings string) (*sql.DB, error) {
	return sql.Open("sqlite3", dsn(path, settings)) //nolint:wrapcheck // Callers do.
}

func dsn(path, settings string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + settings
}

func connectWith(path, settings string) (database.Pool, error) {
	opened, err := openDSN(path, settings)
	if err != nil {
		return database.Pool{}, fmt.Errorf("open database: %w", err)
	}
	return poolOf(opened, 1)
}

func poolOf(opened *sql.DB, connections int) (pool database.Pool, err error) {
	pool.DB = opened
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	pool.GORM, err = database.OpenGORM(gormsqlite.Dialector{Conn: pool.DB}, classify)
	if err != nil {
		return pool, errors.Join(err, pool.Close())
	}
	return pool, nil
}

// readGeneration reads the generation of a database, from the WAL if the page is there. It is the user_version, which
// SQLite stores at a fixed offset in the database header. Each transaction that resets the WAL increments it, so that
// an older copy of the file can be distinguished from the current one.
func readGeneration(ctx context.Context, db gorm.ConnPool) (uint32, error) {
	var version int32
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, fmt.Errorf("read the generation of the database: %w", classify(err))
	}
	return uint32(version), nil //nolint:gosec // Only the bits matter.
}

// setGeneration writes the generation. SQLite reads and writes user_version as a signed number.
func setGeneration(ctx context.Context, db gorm.ConnPool, generation uint32) error {
	//nolint:gosec // Only the bits matter.
	if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", int32(generation))); err != nil {
		return fmt.Errorf("write the generation of the database: %w", classify(err))
	}
	return nil
}

// incrementGeneration increments the generation. It must be called before the transaction writes anything else.
func incrementGeneration(ctx context.Context, tx gorm.ConnPool) error {
	generation, err := readGeneration(ctx, tx)
	if err != nil {
		return err
	}
	return setGeneration(ctx, tx, generation+1)
}
