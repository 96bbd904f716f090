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
	// maxReaders bounds the connections that read; each costs memory for a page cache.
	maxReaders = 4
	// maxWriters has a connection for creates, one for checkpoints, and one for all other changes.
	maxWriters = 3
	// busyTimeout is how long a statement waits for the locks of other programs.
	busyTimeout = 5 * time.Second
)

// connect opens a pool. The settings stand in the DSN, so that every connection of the pool has them: a PRAGMA by Exec
// would reach one. synchronous=FULL is said because the driver is compiled to NORMAL in WAL, which may lose a commit.
// SQLite needs no mutexes of its own, because database/sql gives a connection to one goroutine at a time.
func connect(path, setting string, connections int) (database.Pool, error) {
	return connectWith(path, fmt.Sprintf(
		"_journal_mode=WAL&_synchronous=FULL&_busy_timeout=%d&_foreign_keys=on&_mutex=no&%s",
		busyTimeout.Milliseconds(), setting), connections)
}

// connectImmutable opens a file that nobody changes: it is not locked, and SQLite puts no other file beside it.
func connectImmutable(path string) (database.Pool, error) {
	return connectWith(path, "mode=ro&immutable=1&_mutex=no", 1)
}

// connectReadOnly opens a file to be read alone, with the WAL that other programs write to. It makes no wal-index.
func connectReadOnly(path string) (database.Pool, error) {
	return connectWith(path, fmt.Sprintf("mode=ro&_query_only=on&readonly_shm=1&_busy_timeout=%d&_mutex=no",
		busyTimeout.Milliseconds()), 1)
}

func connectWith(path, settings string, connections int) (pool database.Pool, err error) {
	pool.DB, err = sql.Open("sqlite3", fmt.Sprintf("file:%s?%s", (&url.URL{Path: path}).EscapedPath(), settings))
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
