package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

const sqliteScheme = "sqlite:"

// maxReaders bounds the connections that read; each costs memory for a page cache.
const maxReaders = 4

// Store keeps providers, applications and tokens in one database.
type Store struct {
	// writer has a connection for creates, one for their log, and one for all other changes.
	writer *gorm.DB
	reader *gorm.DB
	files  *guard
	// keyring has the keys that secrets are sealed with.
	keyring *keyring
	tokens  tokenCache
	// creates is where every create enters the writer.
	creates *writer
}

// SQLitePath returns the path in a database URL of the form sqlite:PATH.
func SQLitePath(databaseURL string) (string, error) {
	path, ok := strings.CutPrefix(databaseURL, sqliteScheme)
	if !ok || path == "" {
		return "", fmt.Errorf("database %q is not of the form sqlite:PATH", databaseURL)
	}
	return path, nil
}

// Create opens the database at databaseURL (sqlite:PATH) and brings it to the version of this program. Where there is
// none, it makes one that only the owner can read, with its folder. Its secrets are sealed with the keys in the file at
// keysetPath, which is keyset.json beside the database where that is "", and is made with a new database.
//
// It returns ErrNewerDatabase, ErrUnavailable for a file that is no database, ErrNoKeyset, ErrKeysetUnusable, or an
// error of the file system.
func Create(ctx context.Context, databaseURL, keysetPath string) (*Store, error) {
	path, err := SQLitePath(databaseURL)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the database: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the database: %w", err)
	}
	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("make the database: %w", err)
	}
	return open(ctx, path, keysetPath, migrate)
}

// Open opens the database at databaseURL (sqlite:PATH) as it is, with the keys in the file at keysetPath, which is
// keyset.json beside the database where that is "".
//
// It returns ErrNoDatabase, ErrOlderDatabase, ErrNewerDatabase, ErrUnavailable for a file that is no database,
// ErrNoKeyset, ErrKeysetUnusable, or an error of the file system.
func Open(ctx context.Context, databaseURL, keysetPath string) (*Store, error) {
	path, err := SQLitePath(databaseURL)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w at %s", ErrNoDatabase, path)
	} else if err != nil {
		return nil, fmt.Errorf("look for the database: %w", err)
	}
	return open(ctx, path, keysetPath, unlock)
}

// preparation brings the database at path to this program's version, or refuses it, and gets its keys.
type preparation func(ctx context.Context, db *sql.DB, path, keysetPath string) (*keyring, error)

func open(ctx context.Context, path, keysetPath string, prepare preparation) (*Store, error) {
	if keysetPath == "" {
		keysetPath = filepath.Join(filepath.Dir(path), keysetName)
	}
	store := &Store{tokens: tokenCache{tokens: map[string]cachedToken{}}}
	var err error
	if store.writer, err = connect(path, "_txlock=immediate", 3); err != nil {
		return nil, err
	}
	if store.reader, err = connect(path, "_query_only=on", maxReaders); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	db, err := store.writer.DB()
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if store.keyring, err = prepare(ctx, db, path, keysetPath); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if store.files, err = newGuard(path); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if store.creates, err = startWriter(ctx, store.writer, store.files, store.keyring); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// connect opens a pool. The settings stand in the DSN, so that every connection of the pool has them: a PRAGMA by Exec
// would reach one. synchronous=FULL is said because the driver is compiled to NORMAL in WAL, which may lose a commit.
// SQLite needs no mutexes of its own, because database/sql gives a connection to one goroutine at a time.
func connect(path, setting string, connections int) (*gorm.DB, error) {
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=5000&_foreign_keys=on&_mutex=no&" + setting
	config := gormConfig()
	config.PrepareStmt = true
	db, err := gorm.Open(sqlite.Open(dsn), config)
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
		Logger: logger.Discard, NowFunc: now, SkipDefaultTransaction: true, TranslateError: true,
	}
}

// Ping reads from the database. It returns ErrUnavailable.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.files.check(); err != nil {
		return err
	}
	if _, err := s.keyring.current(); err != nil {
		return errors.Join(ErrUnavailable, err)
	}
	_, err := s.HasTokens(ctx)
	return err
}

// Close stores the creates that wait, waits for running statements and releases the database.
func (s *Store) Close() error {
	var errs []error
	if s.creates != nil {
		errs = append(errs, s.creates.close())
	}
	for _, db := range []*gorm.DB{s.reader, s.writer} {
		if db == nil {
			continue
		}
		pool, err := db.DB()
		if err == nil {
			err = pool.Close()
		}
		errs = append(errs, err)
	}
	// The file goes last: closed earlier, it would take the locks of SQLite with it.
	if s.files != nil {
		errs = append(errs, s.files.close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}
