package sqlite

import (
	"fmt"
	"net/url"
	"time"

	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
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
func connect(path, setting string, connections int) (*gorm.DB, error) {
	return connectWith(path, fmt.Sprintf(
		"_journal_mode=WAL&_synchronous=FULL&_busy_timeout=%d&_foreign_keys=on&_mutex=no&%s",
		busyTimeout.Milliseconds(), setting), connections)
}

// connectUnchanged opens a file that nobody changes: it is not locked, and SQLite puts no other file beside it.
func connectUnchanged(path string) (*gorm.DB, error) {
	return connectWith(path, "mode=ro&immutable=1&_mutex=no", 1)
}

// connectBeside opens a file to be read alone, with the WAL that other programs write to. It makes no wal-index.
func connectBeside(path string) (*gorm.DB, error) {
	return connectWith(path, fmt.Sprintf("mode=ro&_query_only=on&readonly_shm=1&_busy_timeout=%d&_mutex=no",
		busyTimeout.Milliseconds()), 1)
}

func connectWith(path, settings string, connections int) (*gorm.DB, error) {
	dsn := fmt.Sprintf("file:%s?%s", (&url.URL{Path: path}).EscapedPath(), settings)
	config := gormConfig()
	config.PrepareStmt = true
	db, err := gorm.Open(dialector{gormsqlite.Dialector{DSN: dsn}}, config)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, classify(err))
	}
	pool, err := db.DB()
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	return db, nil
}

// gormConfig leaves out what providerd does not need, and above all a log of statements with their values.
func gormConfig() *gorm.Config {
	return &gorm.Config{
		Logger: logger.Discard, SkipDefaultTransaction: true, TranslateError: true,
	}
}

func closePool(db *gorm.DB) error {
	if db == nil {
		return nil
	}
	pool, err := db.DB()
	if err != nil {
		return fmt.Errorf("find connections: %w", err)
	}
	if err := pool.Close(); err != nil {
		return fmt.Errorf("close connections: %w", err)
	}
	return nil
}
