package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	gormsqlite "gorm.io/driver/sqlite"

	"example.com/providerd/store/database"
)

const (
	// maxReaders limits the connections for reading, each of which has a page cache.
	maxReaders = 4
	// maxWriters is one connection for batches, one for checkpoints and one for all other changes.
	maxWriters = 3
	// busyTimeout is how long a statement waits for a lock of another program.
	busyTimeout = 5 * time.Second
)

// connect opens a pool. Settings are in the DSN, because a PRAGMA would reach only one of its connections.
// synchronous=FULL is explicit because the driver is compiled with NORMAL for WAL mode, which can lose commits. SQLite
// needs no mutexes: database/sql never uses a connection from two goroutines simultaneously.
func connect(path, setting string, connections int) (database.Pool, error) {
	return connectWith(path, fmt.Sprintf(
		"_journal_mode=WAL&_synchronous=FULL&_busy_timeout=%d&_foreign_keys=on&_mutex=no&%s",
		busyTimeout.Milliseconds(), setting), connections)
}

// connectImmutable opens a file that no program changes. SQLite takes no locks and creates no files next to it.
func connectImmutable(path string) (database.Pool, error) {
	return connectWith(path, "mode=ro&immutable=1&_mutex=no", 1)
}

// connectReadOnly opens a database that other programs may be writing to. It reads their WAL and creates no wal-index.
func connectReadOnly(path string) (database.Pool, error) {
	return connectWith(path, fmt.Sprintf("mode=ro&_query_only=on&readonly_shm=1&_busy_timeout=%d&_mutex=no",
		busyTimeout.Milliseconds()), 1)
}

// openDSN opens a database file with settings of the driver.
func openDSN(path, settings string) (*sql.DB, error) {
	return sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+settings) //nolint:wrapcheck // Callers do.
}

func connectWith(path, settings string, connections int) (pool database.Pool, err error) {
	pool.DB, err = openDSN(path, settings)
	if err != nil {
		return pool, fmt.Errorf("open database: %w", err)
	}
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	pool.GORM, err = database.OpenGORM(gormsqlite.Dialector{Conn: pool.DB}, classify, true)
	if err != nil {
		return pool, errors.Join(err, pool.Close())
	}
	return pool, nil
}
