package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"example.com/providerd/store/database"
)

// Messages for the operator.
const (
	movedMessage = "was removed or replaced while in use; stop every program that uses the database, put the original " +
		"file back, and restart"
	changedMessage = "does not match what SQLite wrote; stop every program that uses the database, put the original " +
		"files back (with an older copy of the database, remove the -wal and -shm files), and restart"
)

// Remedies for a path that is not a regular file.
const (
	putDatabase = "put the database there, or use another path"
	moveAway    = "move it away"
)

// File is an open file that its path must still refer to. It stays open as long as SQLite has it open: closing it would
// release the locks of SQLite.
type File struct {
	*os.File
	opened syscall.Stat_t
}

// Open opens a database file for reading. It returns ErrUnavailable if it is not a regular file, or a file system
// error.
func Open(path string) (*File, error) { return open(path, putDatabase) }

// open is Open with another remedy in the error.
func open(path, remedy string) (*File, error) {
	// Do not wait for the writer of a FIFO.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("inspect the database files: %w", err)
	}
	guarded := &File{File: file}
	if err := syscall.Fstat(int(file.Fd()), &guarded.opened); err != nil {
		return nil, errors.Join(fmt.Errorf("inspect the database files: %w", err), file.Close())
	}
	if guarded.opened.Mode&syscall.S_IFMT != syscall.S_IFREG {
		err := fmt.Errorf("%w: %s is not a regular file; %s", database.ErrUnavailable, path, remedy)
		return nil, errors.Join(err, file.Close())
	}
	return guarded, nil
}

// Mode returns the st_mode that the file had when it was opened.
func (f *File) Mode() uint32 { return f.opened.Mode }

// ChangedError returns an ErrUnavailable for a file whose content does not match what SQLite wrote.
func (f *File) ChangedError() error {
	return fmt.Errorf("%w: %s %s", database.ErrUnavailable, f.Name(), changedMessage)
}

// check returns the size of the file, or ErrReplaced if the path no longer leads to it. It runs with every commit,
// so it avoids the allocations of os.Stat.
func (f *File) check() (size int64, err error) {
	var now syscall.Stat_t
	err = syscall.Stat(f.Name(), &now)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (now.Dev != f.opened.Dev || now.Ino != f.opened.Ino) {
		return 0, fmt.Errorf("%w: %s %s", database.ErrReplaced, f.Name(), movedMessage)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: inspect %s: %w", database.ErrUnavailable, f.Name(), err)
	}
	return now.Size, nil
}
