package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/mattn/go-sqlite3"
)

const sqliteScheme = "sqlite:"

// SQLitePath returns the path in a database URL of the form sqlite:PATH.
func SQLitePath(databaseURL string) (string, error) {
	path, ok := strings.CutPrefix(databaseURL, sqliteScheme)
	if !ok || path == "" {
		return "", fmt.Errorf("database %q is not of the form sqlite:PATH", databaseURL)
	}
	return path, nil
}

// Option changes how a Store works.
type Option func(*Store)

// WithLogger makes the store log what goes wrong beside the statements of its callers. The default is to log nothing.
func WithLogger(logger *slog.Logger) Option { return func(s *Store) { s.logger = logger } }

// Create opens the database at databaseURL (sqlite:PATH) and brings it to the version of this program. Where there is
// none, it makes one that only the owner can read, with its folder. Its secrets are sealed with the keys in the file at
// keysetPath, which is keyset.json beside the database where that is "", and is made with a new database.
//
// It returns ErrNewerDatabase, ErrForeignDatabase, ErrExposedDatabase, ErrUnavailable for a file that is no database or
// that does not belong to the WAL beside it, ErrNoKeyset, ErrKeysetUnusable, or an error of the file system.
func Create(ctx context.Context, databaseURL, keysetPath string, options ...Option) (*Store, error) {
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
	return open(ctx, path, keysetPath, migrate, options)
}

// Open opens the database at databaseURL (sqlite:PATH) as it is, with the keys in the file at keysetPath, which is
// keyset.json beside the database where that is "".
//
// It returns ErrNoDatabase, ErrOlderDatabase, ErrNewerDatabase, ErrForeignDatabase, ErrExposedDatabase, ErrUnavailable
// for a file that is no database or that does not belong to the WAL beside it, ErrNoKeyset, ErrKeysetUnusable, or an
// error of the file system.
func Open(ctx context.Context, databaseURL, keysetPath string, options ...Option) (*Store, error) {
	path, err := SQLitePath(databaseURL)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w at %s", ErrNoDatabase, path)
	} else if err != nil {
		return nil, fmt.Errorf("look for the database: %w", err)
	}
	return open(ctx, path, keysetPath, unlock, options)
}

// preparation brings the database to this program's version, or refuses it, and gets its keys.
type preparation func(ctx context.Context, db *sql.DB, path, keysetPath string) (*keyring, error)

// open opens the database behind path, which may be a symbolic link: SQLite's other files stand beside its target.
// Programs that open a database take turns, so that none sees the files of another's that are half made.
func open(
	ctx context.Context, path, keysetPath string, prepare preparation, options []Option,
) (store *Store, err error) {
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, fmt.Errorf("look for the database: %w", err)
	}
	store = &Store{
		folder: filepath.Dir(path), tokens: tokenCache{tokens: map[string]cachedToken{}},
		logger: slog.New(slog.DiscardHandler),
	}
	for _, option := range options {
		option(store)
	}
	if keysetPath == "" {
		keysetPath = filepath.Join(store.folder, keysetName)
	}
	err = withLocks(ctx, []string{store.folder, filepath.Dir(keysetPath)}, func() error {
		return store.open(ctx, path, keysetPath, prepare)
	})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

func (s *Store) open(ctx context.Context, path, keysetPath string, prepare preparation) error {
	database, err := openDatabaseFile(path)
	if err != nil {
		return err
	}
	s.database = database
	probe, err := s.checkWAL(ctx)
	if err != nil {
		return err
	}
	if s.writer, err = connect(path, "_txlock=immediate", maxWriters); err != nil {
		return err
	}
	db, err := s.writer.DB()
	if err != nil {
		return fmt.Errorf("open database %s: %w", path, err)
	}
	// SQLite makes its other files when the database is read.
	if _, err := db.ExecContext(ctx, selectGeneration); err != nil {
		return fmt.Errorf("open database %s: %w", path, classify(err))
	}
	if err := errors.Join(s.watch(), probe.Close()); err != nil {
		return err
	}
	if s.keyring, err = prepare(ctx, db, path, keysetPath); err != nil {
		return err
	}
	if s.reader, err = connect(path, "_query_only=on", maxReaders); err != nil {
		return err
	}
	s.creates, err = startWriter(ctx, s.writer, s.files, s.keyring, s.logger)
	return err
}

// checkWAL makes sure that the WAL which other programs have open, or which a crash left, belongs to the database, before
// SQLite applies it. It returns a connection that is to be closed once there is another: with the last one, SQLite
// copies the WAL into the database.
func (s *Store) checkWAL(ctx context.Context) (io.Closer, error) {
	if err := checkShared(ctx, s.database); err != nil {
		return nil, err
	}
	wal, err := os.Stat(s.database.Name() + "-wal")
	if errors.Is(err, fs.ErrNotExist) || err == nil && wal.Size() == 0 {
		return io.NopCloser(nil), nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at the WAL: %w", err)
	}
	// It has no settings that make SQLite read the schema, which files that do not belong together may not have.
	probe, err := sql.Open("sqlite3", fmt.Sprintf("file:%s?mode=rw&_busy_timeout=%d",
		(&url.URL{Path: s.database.Name()}).EscapedPath(), busyTimeout.Milliseconds()))
	if err != nil {
		return nil, fmt.Errorf("look at the WAL: %w", err)
	}
	probe.SetMaxOpenConns(1)
	_, err = probe.ExecContext(ctx, selectGeneration)
	if native, ok := errors.AsType[sqlite3.Error](err); ok && native.Code == sqlite3.ErrCorrupt {
		return nil, fmt.Errorf("%w: %s %s", ErrUnavailable, s.database.Name(), whenChanged)
	}
	if err != nil {
		return nil, fmt.Errorf("look at the WAL of %s: %w", s.database.Name(), classify(err))
	}
	if err := s.watch(); err != nil {
		return nil, err
	}
	return probe, s.files.checkGeneration(ctx, probe)
}

// watch begins to guard the files of the database, which stay once SQLite has it open.
func (s *Store) watch() (err error) {
	if s.files != nil {
		return s.files.check()
	}
	if s.files, err = newGuard(s.database); err != nil {
		return err
	}
	return s.files.check()
}
