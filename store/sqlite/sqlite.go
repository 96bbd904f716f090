// Package sqlite keeps providers in an embedded SQLite database, and makes and restores its backups. It has what is
// SQLite's alone: the connections, the commit and its checkpoints, the room on the disk and the migrations. What a
// create is it does not know; that is in store. What guards the files against other programs and people is in
// sqlite/guard.
//
// Start with Create, then read batches.go and checkpoint.go in the order of a commit.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/mattn/go-sqlite3"

	"example.com/providerd/store/database"
	"example.com/providerd/store/durable"
	"example.com/providerd/store/sqlite/guard"
)

// Scheme begins the URL of a SQLite database, sqlite:PATH.
const Scheme = "sqlite:"

// LibraryVersion is that of SQLite itself, which is part of this program.
func LibraryVersion() string {
	version, _, _ := sqlite3.Version()
	return version
}

// Path returns the path in a URL of the form sqlite:PATH. It fails for any other, whose text, that may have a password,
// is not in the error.
func Path(url string) (string, error) {
	path, ok := strings.CutPrefix(url, Scheme)
	if !ok || path == "" {
		return "", errors.New("not of the form sqlite:PATH")
	}
	return path, nil
}

// Create opens the database at path and brings it to the version of this program. Where there is none, it makes one
// that only the owner can read, with its folder; where root makes it in a folder that is there, that is the folder's
// owner, to whom SQLite gives its other files, too. The logger gets what goes wrong beside the statements of callers.
//
// It returns ErrReservedName, database.ErrNewer, ErrForeign, ErrInsecureMode, ErrUnavailable for a file that is no database
// or that does not belong to the WAL beside it, or an error of the file system.
//
// A process should have one database open once: to close it releases what locks (POSIX) the process has on its files,
// so that to other processes nobody seems to have it open any more.
func Create(ctx context.Context, path string, logger *slog.Logger) (*Database, error) {
	if err := CheckName(durable.Resolve(path)); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the database directory: %w", err)
	}
	return open(ctx, path, logger, createIfMissing, migrate)
}

// Open opens the database at path as it is. The logger gets what goes wrong beside the statements of callers.
//
// It returns ErrReservedName, database.ErrNoDatabase, ErrOlder, ErrNewer, ErrForeign, ErrInsecureMode, ErrUnavailable for a file
// that is no database or that does not belong to the WAL beside it, or an error of the file system.
func Open(ctx context.Context, path string, logger *slog.Logger) (*Database, error) {
	return openExisting(ctx, path, logger, checkSchema(database.Schema.Check))
}

// OpenForBackup is Open for a database that may be of an older version of this program, and is only read.
func OpenForBackup(ctx context.Context, path string, logger *slog.Logger) (*Database, error) {
	return openExisting(ctx, path, logger, checkSchema(database.Schema.CheckKnown))
}

func openExisting(
	ctx context.Context, path string, logger *slog.Logger, prepare prepareFunc,
) (*Database, error) {
	// A directory that is missing cannot be locked.
	if err := checkExists(path); err != nil {
		return nil, err
	}
	return open(ctx, path, logger, checkExists, prepare)
}

// checkExists returns ErrNoDatabase, with the path from the root, where there is no file.
func checkExists(path string) error {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute
		}
		return fmt.Errorf("%w at %s", database.ErrNoDatabase, path)
	}
	if err != nil {
		return fmt.Errorf("find the database: %w", err)
	}
	return nil
}

// prepareFunc brings a database to this program's version, or refuses it.
type prepareFunc func(ctx context.Context, db *sql.DB, path string) error

// open opens the database behind path, which may be a symbolic link: SQLite's other files are beside its target, which
// provide creates or demands. Programs take turns from the first look at the files on, so that none sees those that
// another one has half made.
func open(
	ctx context.Context, path string, logger *slog.Logger, provide func(path string) error, prepare prepareFunc,
) (*Database, error) {
	target := durable.Resolve(path)
	if err := CheckName(target); err != nil {
		return nil, err
	}
	level, err := SchemaVersion()
	if err != nil {
		return nil, err
	}
	opened := &Database{logger: logger, level: level, probing: make(chan struct{}, 1)}
	opened.closeOnce = sync.OnceValue(opened.close)
	err = durable.WithLock(ctx, filepath.Dir(target), func() error {
		if err := checkNoOrphanWAL(target); err != nil {
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

func (d *Database) open(ctx context.Context, path string, prepare prepareFunc) (err error) {
	if d.file, err = openDatabaseFile(path); err != nil {
		return err
	}
	probe, err := d.inspect(ctx)
	if err != nil {
		return err
	}
	if d.writers, err = connect(path, "_txlock=immediate", maxWriters); err != nil {
		return wrapPath(path, err)
	}
	// SQLite makes its other files when the database is read.
	if _, err := d.writers.ExecContext(ctx, selectGeneration); err != nil {
		return fmt.Errorf("open database %s: %w", path, classify(err))
	}
	if err := errors.Join(d.watch(), probe.Close()); err != nil {
		return err
	}
	if err := prepare(ctx, d.writers.DB, path); err != nil {
		return err
	}
	d.readers, err = connect(path, "_query_only=on", maxReaders)
	return wrapPath(path, err)
}

// watch begins to guard the files of the database, which stay once SQLite has it open.
func (d *Database) watch() (err error) {
	if d.files != nil {
		return d.files.Check()
	}
	if d.files, err = guard.Watch(d.file); err != nil {
		return err
	}
	return d.files.Check()
}
