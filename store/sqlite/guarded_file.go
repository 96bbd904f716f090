package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"example.com/providerd/store/database"
)

// guardedFile is an open file that its path must still refer to. It stays open as long as SQLite has it open: closing
// it would release the locks of SQLite.
type guardedFile struct {
	*os.File
	opened fs.FileInfo
}

// openGuarded opens a database file for reading. It returns ErrUnavailable if it is not a regular file, or a file
// system error.
func openGuarded(path string) (*guardedFile, error) {
	// Do not wait for the writer of a FIFO.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("inspect the database files: %w", err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s is not a regular file; pass the path of the database file",
			database.ErrUnavailable, path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &guardedFile{File: file, opened: info}, nil
}

// changedError is an ErrUnavailable for the path of a file whose content does not match what SQLite wrote.
type changedError struct{ path string }

// Error says what to do.
func (e changedError) Error() string {
	return fmt.Sprintf("%v: %s does not match what SQLite wrote; stop every program that uses the database, restore "+
		"the original files (with an older copy of the database, remove the -wal and -shm files), and restart",
		database.ErrUnavailable, e.path)
}

// Unwrap returns ErrUnavailable.
func (changedError) Unwrap() error { return database.ErrUnavailable }

func movedError(path string) error {
	return fmt.Errorf("%w: %s was removed or replaced while in use; stop every program that uses the database, restore "+
		"the original file, and restart", database.ErrReplaced, path)
}

// check returns the size of the file, or ErrReplaced if the path no longer leads to it.
func (f *guardedFile) check() (size int64, err error) {
	var now syscall.Stat_t
	err = syscall.Stat(f.Name(), &now)
	opened := f.opened.Sys().(*syscall.Stat_t)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (now.Dev != opened.Dev || now.Ino != opened.Ino) {
		return 0, movedError(f.Name())
	}
	if err != nil {
		return 0, fmt.Errorf("%w: inspect %s: %w", database.ErrUnavailable, f.Name(), err)
	}
	return now.Size, nil
}

// read fills content and reports whether the file was long enough.
func (f *guardedFile) read(content []byte, offset int64) (isLong bool, err error) {
	count, err := f.ReadAt(content, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("%w: read %s: %w", database.ErrUnavailable, f.Name(), err)
	}
	return count == len(content), nil
}
