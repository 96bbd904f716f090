package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"example.com/providerd/store/database"
)

// joinTimeout is how long files may look damaged while another program opens or closes the database.
const joinTimeout = time.Second

// CheckUse checks, before SQLite touches the files, whether other programs have a database open, which can then be
// joined. It returns ErrUnavailable if they have other files open than those at its path, or if a file was changed.
func CheckUse(ctx context.Context, file *File) (isInUse bool, err error) {
	for begun := time.Now(); ; {
		isInUse, err = checkUseNow(file)
		if !errors.Is(err, database.ErrUnavailable) || time.Since(begun) > joinTimeout {
			return isInUse, err
		}
		select {
		case <-time.After(readPause):
		case <-ctx.Done():
			return false, fmt.Errorf("wait for another program: %w", ctx.Err())
		}
	}
}

// checkUseNow compares the locks of both files. If others use another wal-index than the one on disk, SQLite would
// create a second one, and both would write to the WAL independently.
func checkUseNow(file *File) (isInUse bool, err error) {
	index := file.Name() + "-shm"
	if isInUse, err = file.IsInUse(); err != nil {
		return false, err
	}
	isIndexInUse, err := isIndexLocked(index)
	switch {
	case err != nil:
		return false, err
	case isInUse && !isIndexInUse:
		return false, movedError(index)
	case !isInUse && isIndexInUse:
		return false, movedError(file.Name())
	case !isInUse:
		return false, nil
	}
	files, err := Watch(file)
	if missing, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrNotExist) {
		return false, movedError(missing.Path)
	}
	if err != nil {
		return false, err
	}
	return true, errors.Join(files.Check(), files.Close())
}

// The byte ranges that SQLite locks (https://sqlite.org/src/file/src/os_unix.c). In WAL mode, every connection holds a
// shared lock on the shared bytes of the database and one on the dead man's switch of the wal-index.
const (
	sharedBytes      = 0x40000000 + 2
	sharedBytesCount = 510
	deadMansSwitch   = 128
)

// IsInUse reports whether another program has the database open. It returns a file system error.
func (f *File) IsInUse() (bool, error) { return isLocked(f.File, sharedBytes, sharedBytesCount) }

func isIndexLocked(path string) (bool, error) {
	// Do not wait for the writer of a FIFO, which checks of the file report.
	index, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("inspect the database files: %w", err)
	}
	locked, err := isLocked(index, deadMansSwitch, 1)
	return locked, errors.Join(err, index.Close())
}

// isLocked reports whether another process holds a lock on a byte range of a file.
func isLocked(file *os.File, start, length int64) (bool, error) {
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: start, Len: length}
	err := syscall.FcntlFlock(file.Fd(), syscall.F_GETLK, &lock)
	return lock.Type != syscall.F_UNLCK, database.Wrap("query the locks on "+file.Name(), err)
}
