package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"example.com/providerd/store/database"
)

// applicationID marks a SQLite database as one of providerd ("pvdd" in ASCII), in the header of its file.
const applicationID = 0x70766464

// openDatabaseFile opens the file of a database that nobody but its owner can write to. It returns ErrExposed or
// an error of the file system.
func openDatabaseFile(path string) (*guardedFile, error) {
	file, err := openGuarded(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("look at the database: %w", err), file.Close())
	}
	const othersMayWrite = 0o022
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		err = fmt.Errorf("%w: %s is not a regular file", database.ErrUnavailable, path)
	case mode.Perm()&othersMayWrite != 0:
		err = fmt.Errorf("%w: others can write to %s; run chmod 600 on it", database.ErrExposed, path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// exists tells whether there is anything at path, be it a symbolic link that leads nowhere.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", path, err)
	}
	return true, nil
}

// checkNotMissing refuses to make a database beside the WAL of one that is away: SQLite would remove what that has of
// it.
func checkNotMissing(path string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if wal, err := os.Stat(path + "-wal"); err != nil || wal.Size() == 0 {
		return nil //nolint:nilerr // There is no WAL.
	}
	return fmt.Errorf("%w: %s is missing or empty, but its WAL is there; put the database back, or remove the files that "+
		"end in -wal and -shm to begin with a new one", database.ErrUnavailable, path)
}
