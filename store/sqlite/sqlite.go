// Package sqlite stores providers in an embedded SQLite database, and backs it up and restores it. It handles what is
// specific to SQLite: connections, commits and checkpoints, disk space and migrations. Creates themselves are in
// package store.
//
// Start with Create, then read insert.go and checkpoint.go, which follow a commit.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/mattn/go-sqlite3"

	"example.com/providerd/store/database"
	"example.com/providerd/store/files"
	"example.com/providerd/store/sqlite/connection"
	"example.com/providerd/store/sqlite/guard"
)

// Scheme begins the URL of a SQLite database, sqlite:PATH.
const Scheme = "sqlite:"

// LibraryVersion returns the version of the SQLite library linked into this program.
func LibraryVersion() string {
	version, _, _ := sqlite3.Version()
	return version
}

// Path returns the path in a URL of the form sqlite:PATH. Its error does not quote the URL, which may have a password.
func Path(url string) (string, error) {
	path, ok := strings.CutPrefix(url, Scheme)
	if !ok || path == "" {
		return "", errors.New("not of the form sqlite:PATH")
	}
	return path, nil
}

// Create opens the database at path and migrates it to the schema version of this program. If there is none, it creates
// the database and its directory, accessible to the owner only. If root creates the file in an existing directory, the
// file belongs to the owner of that directory, and SQLite gives its other files the same owner. Errors outside of
// callers' statements, such as failed checkpoints, go to logger.
//
// It returns ErrReservedName, database.ErrNewer, ErrForeign or ErrInsecureMode, ErrUnavailable if the file is not a
// database or does not match the WAL next to it, or a file system error.
//
// A process should open a database only once: closing it releases all POSIX locks that the process holds on its files,
// after which other processes consider the database unused.
func Create(ctx context.Context, path string, logger *slog.Logger) (*Database, error) {
	if err := CheckName(files.Resolve(path)); err != nil {
		return nil, err
	}
	if err := files.CreateDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return open(ctx, path, logger, connection.CreateFile, migrate)
}

// Open opens an existing database without migrating it. Errors outside of callers' statements go to logger.
//
// It returns ErrReservedName, database.ErrNoDatabase, ErrOlder, ErrNewer, ErrForeign or ErrInsecureMode, ErrUnavailable
// if the file is not a database or does not match the WAL next to it, or a file system error.
func Open(ctx context.Context, path string, logger *slog.Logger) (*Database, error) {
	return openExisting(ctx, path, logger, checkSchema(database.Schema.Check))
}

// OpenForBackup is like Open, but also opens a database of an older schema version, which must only be read.
func OpenForBackup(ctx context.Context, path string, logger *slog.Logger) (*Database, error) {
	return openExisting(ctx, path, logger, checkSchema(database.Schema.CheckKnown))
}

// Migrate migrates the existing database at path to the schema version of this program, as Create does. Errors outside
// of the migrations go to logger. It returns the errors of Open except ErrOlder.
func Migrate(ctx context.Context, path string, logger *slog.Logger) error {
	opened, err := openExisting(ctx, path, logger, func(ctx context.Context, db *sql.DB, path string) error {
		// migrate would make a database of an empty file, which only Create may do.
		if _, err := readSchema(ctx, db, path); err != nil {
			return err
		}
		return migrate(ctx, db, path)
	})
	if err != nil {
		return err
	}
	return opened.Close()
}

func openExisting(
	ctx context.Context, path string, logger *slog.Logger, prepare prepareFunc,
) (*Database, error) {
	// A missing directory cannot be locked.
	if err := checkExists(path); err != nil {
		return nil, err
	}
	return open(ctx, path, logger, checkExists, prepare)
}

// checkExists returns ErrNoDatabase, with the absolute path, if path does not exist.
func checkExists(path string) error {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute
		}
		return fmt.Errorf("%w at %s", database.ErrNoDatabase, path)
	}
	return database.Wrap("find the database", err)
}

// open opens the database at path, which may be a symbolic link: SQLite keeps its other files next to the target. It
// calls provide to create the file or to check that it exists. It holds the lock of the directory from the first check
// on, so that no process sees the half-created files of another.
func open(
	ctx context.Context, path string, logger *slog.Logger, provide func(path string) error, prepare prepareFunc,
) (*Database, error) {
	target := files.Resolve(path)
	if err := CheckName(target); err != nil {
		return nil, err
	}
	version, err := SchemaVersion()
	if err != nil {
		return nil, err
	}
	opened := &Database{logger: logger, schemaVersion: version, probing: make(chan struct{}, 1)}
	opened.closeOnce = sync.OnceValue(opened.close)
	err = files.WithLock(ctx, filepath.Dir(target), func() error {
		if err := connection.CheckNoOrphanWAL(target); err != nil {
			return err
		}
		if err := provide(target); err != nil {
			return err
		}
		path, err := filepath.EvalSymlinks(path)
		if err != nil {
			return fmt.Errorf("find the database: %w", err)
		}
		opened.dir = filepath.Dir(path)
		return opened.open(ctx, path, prepare)
	})
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

// allowConnection checks the files once they are guarded.
func (d *Database) allowConnection() error {
	if d.files == nil {
		return nil
	}
	return d.files.Check()
}

const (
	// maxReaders limits the connections for reading, each of which has a page cache. One is for Find.
	maxReaders = 5
	// maxWriters is one connection for batches and one for checkpoints.
	maxWriters = 2
)

// immediate makes each transaction begin with the lock of the database.
const immediate = "_txlock=immediate"

func (d *Database) open(ctx context.Context, path string, prepare prepareFunc) (err error) {
	if d.file, err = connection.OpenFile(path); err != nil {
		return err
	}
	probe, err := d.inspect(ctx)
	if err != nil {
		return err
	}
	d.writers, err = connection.Open(path, immediate, connection.BusyTimeout, maxWriters, d.allowConnection)
	if err != nil {
		return database.Wrap(path, err)
	}
	// SQLite creates the -wal and -shm files when the database is first read.
	if _, err := connection.ReadGeneration(ctx, d.writers); err != nil {
		return database.Wrap(path, err)
	}
	if d.files, err = guard.Watch(d.file); err != nil {
		return err
	}
	if err := errors.Join(d.files.Check(), probe.Close()); err != nil {
		return err
	}
	if err := prepare(ctx, d.writers.DB, path); err != nil {
		d.keepWAL()
		return err
	}
	if d.changes, err = connection.Open(path, immediate, busyRound, 1, d.allowConnection); err != nil {
		return database.Wrap(path, err)
	}
	d.readers, err = connection.Open(path, "_query_only=on", connection.BusyTimeout, maxReaders, d.allowConnection)
	if err == nil {
		d.finder.Conn, err = d.readers.Conn(ctx)
	}
	return database.Wrap(path, err)
}

// keepWAL leaves the connections open, as Close may, if the WAL has all tables: closing them would delete it, and the
// file would look like a copy that lacks it.
func (d *Database) keepWAL() {
	header, _ := connection.ReadHeader(d.file.File)
	if wal, _ := connection.SizeOf(d.file.Name() + "-wal"); header.IsOnePage && (wal > 0 || !header.IsBlank) {
		d.closeOnce = func() error { return nil }
	}
}

// inspect checks, before anything is changed, that the file is empty or a database of providerd, and that a WAL which
// other programs have open or a crash left behind belongs to it. The caller must close what is returned after opening
// another connection: when the last one closes, SQLite copies the WAL into the database. If the WAL belongs to another
// database, the connection is therefore never closed and lasts as long as the process.
func (d *Database) inspect(ctx context.Context) (io.Closer, error) {
	if _, err := guard.CheckUse(ctx, d.file); err != nil {
		return nil, err
	}
	wal, err := connection.SizeOf(d.file.Name() + "-wal")
	if err != nil {
		return nil, err
	}
	header, err := connection.ReadHeader(d.file.File)
	if errors.Is(err, database.ErrCorrupt) && wal > 0 {
		return nil, guard.Changed(d.file.Name())
	}
	if err != nil {
		return nil, err
	}
	d.isNew = header.IsBlank && wal <= 0
	if wal <= 0 {
		return io.NopCloser(nil), nil
	}
	// Its DSN has no settings that make SQLite read the schema, which mismatched files may lack.
	probe, err := connection.OpenDSN(d.file.Name(),
		fmt.Sprintf("mode=rw&_busy_timeout=%d", connection.BusyTimeout.Milliseconds()))
	if err != nil {
		return nil, fmt.Errorf("inspect the database: %w", err)
	}
	probe.SetMaxOpenConns(1)
	err = d.file.CheckGeneration(func() (uint32, error) { return connection.ReadGeneration(ctx, probe) })
	if errors.Is(err, database.ErrCorrupt) {
		err = guard.Changed(d.file.Name())
	}
	return probe, err
}
