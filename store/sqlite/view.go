package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/durable"
	"example.com/providerd/store/sqlite/guard"
)

// View is a SQLite database that is only looked at.
type View struct {
	// file is kept open as long as SQLite has it: to close it would release the locks that SQLite holds.
	file   *guard.File
	reader database.Pool
	// isInUse tells that another program had the database open.
	isInUse bool
}

var _ database.View = (*View)(nil)

// OpenReadOnly opens the database at path to be read alone, whatever its mode. It makes and changes no file, takes no turn and
// holds no other program up: what others have open it reads as any reader of theirs, and anything else as it lies on
// the disk.
//
// It returns database.ErrNoDatabase, ErrUnavailable for a file that is no database, that was removed or replaced under other
// programs, or whose WAL cannot be read or is that of another one, or an error of the file system.
func OpenReadOnly(ctx context.Context, path string) (*View, error) {
	if err := checkNoOrphanWAL(durable.Resolve(path)); err != nil {
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
	// A WAL is read by a wal-index that is left as it is, or by one in memory where nobody keeps that up to date. Without
	// a WAL, SQLite would make one, but for a file that it is told nobody changes.
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
	return v.file.CheckGeneration(currentGeneration(ctx, v.reader.DB))
}

// hasWAL tells whether there is a WAL to be read. It returns ErrUnavailable for one without its wal-index, which only a
// program that writes may make.
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

// sizeOf returns the size of a file, in bytes, or -1 where there is none.
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

// IsInUse tells whether another program had the database open.
func (v *View) IsInUse() bool { return v.isInUse }

// Reader returns a handle over one connection.
func (v *View) Reader() *gorm.DB { return v.reader.GORM }

// Schema tells how far the database was migrated. A program cannot use one of a later level.
func (v *View) Schema(ctx context.Context) (database.Schema, error) {
	return readSchema(ctx, v.reader.DB, v.file.Name())
}

// Close releases the database, and leaves its files as they are.
func (v *View) Close() error {
	return errors.Join(database.ClosePools(v.reader), v.file.Close())
}
