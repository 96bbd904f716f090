package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/files"
	"example.com/providerd/store/sqlite/guard"
)

// View is a SQLite database opened for inspection. It is never written to.
type View struct {
	// file stays open as long as SQLite has it open: closing it would release the locks of SQLite.
	file    *guard.File
	reader  database.Pool
	isInUse bool
}

var _ database.View = (*View)(nil)

// OpenReadOnly opens the database at path for reading, regardless of its state. It creates and changes no files, takes
// no lock on the directory and blocks no other program. If other programs have the database open, it reads like any of
// their readers; otherwise it reads the files as they are on disk.
//
// It returns database.ErrNoDatabase, ErrUnavailable if the file is not a database, was removed or replaced while other
// programs use it, or has a WAL that cannot be read or belongs to another database, or a file system error.
func OpenReadOnly(ctx context.Context, path string) (*View, error) {
	if err := checkNoOrphanWAL(files.Resolve(path)); err != nil {
		return nil, err
	}
	if err := checkExists(path); err != nil {
		return nil, err
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("find the database: %w", err)
	}
	file, err := guard.Open(path)
	if err != nil {
		return nil, err
	}
	view := &View{file: file}
	if err := view.open(ctx); err != nil {
		return nil, errors.Join(err, view.Close())
	}
	return view, nil
}

func (v *View) open(ctx context.Context) (err error) {
	if v.isInUse, err = guard.CheckUse(ctx, v.file); err != nil {
		return err
	}
	hasWAL, err := v.hasWAL()
	if err != nil {
		return err
	}
	// SQLite reads a WAL through the existing wal-index, without changing it, or through one in memory if no other program
	// keeps it up to date. If there is no WAL, it would create one unless the file is declared immutable.
	if hasWAL {
		v.reader, err = connectReadOnly(v.file.Name())
	} else {
		v.reader, err = connectImmutable(v.file.Name())
	}
	if err != nil {
		return wrapPath(v.file.Name(), err)
	}
	var id int
	if err := v.reader.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return fmt.Errorf("read database %s: %w", v.file.Name(), classify(err))
	}
	if !hasWAL || id != applicationID {
		return nil
	}
	return v.file.CheckGeneration(func() (uint32, error) { return readGeneration(ctx, v.reader) })
}

// hasWAL reports whether there is a WAL to read. It returns ErrUnavailable if its wal-index is missing, which only a
// program that writes can rebuild.
func (v *View) hasWAL() (bool, error) {
	wal, err := sizeOf(v.file.Name() + "-wal")
	if err != nil || wal < 0 {
		return false, err
	}
	index, err := sizeOf(v.file.Name() + "-shm")
	if err != nil {
		return false, err
	}
	if index < 0 && wal > 0 {
		return false, fmt.Errorf("%w: %s-wal exists without its -shm file; run \"providerd serve\" to "+
			"rebuild it", database.ErrUnavailable, v.file.Name())
	}
	return index >= 0, nil
}

// sizeOf returns the size of a file in bytes, or -1 if it does not exist.
func sizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("inspect the database files: %w", err)
	}
	return info.Size(), nil
}

// IsInUse reports whether another program had the database open when it was opened.
func (v *View) IsInUse() bool { return v.isInUse }

// Reader returns a handle to the only connection.
func (v *View) Reader() *gorm.DB { return v.reader.GORM }

// Schema returns the schema version of the database and the migrations that this program knows.
func (v *View) Schema(ctx context.Context) (database.Schema, error) {
	return readSchema(ctx, v.reader.DB, v.file.Name())
}

// CheckIntegrity makes SQLite check every page, row and index. It returns database.ErrCorrupt with what it finds.
func (v *View) CheckIntegrity(ctx context.Context) error { return checkIntegrity(ctx, v.reader.DB) }

// Close closes the database and leaves its files unchanged.
func (v *View) Close() error {
	return errors.Join(database.ClosePools(v.reader), v.file.Close())
}
