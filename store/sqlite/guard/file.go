package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"example.com/providerd/store/database"
)

// What the operator is told of each kind of harm.
const (
	movedMessage = "was removed or replaced while in use; stop every program that uses the database, put the " +
		"original file back, and restart"
	changedMessage = "does not match what SQLite wrote; stop every program that uses the database, put the original files " +
		"back (with an older copy of the database, remove the -wal and -shm files), and restart"
)

// What to do about something else in the place of a file.
const (
	putDatabase = "put the database there, or use another path"
	moveAway    = "move it away"
)

// File is a file that is to stay what its path leads to. It is kept open as long as SQLite has it: to close it
// would release the locks that SQLite holds.
type File struct {
	*os.File
	opened syscall.Stat_t
}

// Open opens the file of a database to be read. It returns ErrUnavailable for what is not a regular file, or an error
// of the file system.
func Open(path string) (*File, error) { return open(path, putDatabase) }

// open returns ErrUnavailable, with the remedy, for what is not a regular file, or an error of the file system.
func open(path, remedy string) (*File, error) {
	// A FIFO is not waited for.
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

// Mode returns the type and permission bits that the file had when it was opened.
func (f *File) Mode() uint32 { return f.opened.Mode }

// Changed returns the ErrUnavailable for a file that does not match what SQLite wrote.
func (f *File) ChangedError() error {
	return fmt.Errorf("%w: %s %s", database.ErrUnavailable, f.Name(), changedMessage)
}

// check returns the size of the file, or ErrUnavailable where its path does not lead to it any more. It is called with
// every commit, and so spares what os.Stat allocates.
func (f *File) check() (size int64, err error) {
	var now syscall.Stat_t
	err = syscall.Stat(f.Name(), &now)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (now.Dev != f.opened.Dev || now.Ino != f.opened.Ino) {
		return 0, fmt.Errorf("%w: %s %s", database.ErrUnavailable, f.Name(), movedMessage)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: inspect %s: %w", database.ErrUnavailable, f.Name(), err)
	}
	return now.Size, nil
}
