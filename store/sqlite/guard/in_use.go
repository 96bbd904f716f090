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

// The byte ranges that SQLite locks (https://sqlite.org/src/file/src/os_unix.c). In WAL mode, every connection holds a
// shared lock on the shared bytes of the database and one on the dead man's switch of the wal-index.
const (
	sharedBytes      = 0x40000000 + 2
	sharedBytesCount = 510
	deadMansSwitch   = 128
)

const (
	// joinTimeout is how long files may look damaged while another program opens or closes the database.
	joinTimeout = time.Second
	joinRetry   = 20 * time.Millisecond
)

// CheckShared checks, before SQLite touches the files, that a database which other programs have open can be joined. It
// returns ErrUnavailable if a file was removed, replaced or changed while they use it.
func CheckShared(ctx context.Context, file *File) error {
	for start := time.Now(); ; {
		err := checkSharedNow(file)
		if !errors.Is(err, database.ErrUnavailable) || time.Since(start) > joinTimeout {
			return err
		}
		select {
		case <-time.After(joinRetry):
		case <-ctx.Done():
			return fmt.Errorf("wait for another program: %w", ctx.Err())
		}
	}
}

func checkSharedNow(file *File) error {
	inUse, err := file.IsInUse()
	if err != nil || !inUse {
		return err
	}
	// If others use a wal-index other than the one on disk, SQLite would create a second one, and both would write to the
	// WAL independently.
	index := file.Name() + "-shm"
	shared, err := isIndexLockedElsewhere(index)
	if err != nil {
		return err
	}
	if !shared {
		return fmt.Errorf("%w: %s %s", database.ErrUnavailable, index, movedMessage)
	}
	files, err := Watch(file)
	if missing, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s %s", database.ErrUnavailable, missing.Path, movedMessage)
	}
	if err != nil {
		return err
	}
	return errors.Join(files.Check(), files.Close())
}

func isIndexLockedElsewhere(path string) (bool, error) {
	// Do not wait for the writer of a FIFO.
	index, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("inspect the database files: %w", err)
	}
	locked, err := isLockedElsewhere(index, deadMansSwitch, 1)
	return locked, errors.Join(err, index.Close())
}

// isLockedElsewhere reports whether another process holds a lock on a byte range of a file.
func isLockedElsewhere(file *os.File, start, length int64) (bool, error) {
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: start, Len: length}
	if err := syscall.FcntlFlock(file.Fd(), syscall.F_GETLK, &lock); err != nil {
		return false, fmt.Errorf("query the locks on %s: %w", file.Name(), err)
	}
	return lock.Type != syscall.F_UNLCK, nil
}

// IsInUse reports whether another program has the database open. It returns a file system error.
func (f *File) IsInUse() (bool, error) {
	return isLockedElsewhere(f.File, sharedBytes, sharedBytesCount)
}

// CheckUse is CheckShared for a database that is only read, and reports whether another program has it open. It also
// returns ErrUnavailable if they have a different file open than the one at the path.
func CheckUse(ctx context.Context, file *File) (isInUse bool, err error) {
	if err := CheckShared(ctx, file); err != nil {
		return false, err
	}
	// SQLite locks the wal-index only while it has the database open. If the database at the path is not locked then, the
	// programs have another file open.
	for range 2 {
		isIndexInUse, err := isIndexLockedElsewhere(file.Name() + "-shm")
		if err != nil {
			return false, err
		}
		if isInUse, err = file.IsInUse(); err != nil {
			return false, err
		}
		if !isIndexInUse || isInUse {
			return isInUse, nil
		}
		// Another program may have closed both between the two checks.
	}
	return false, fmt.Errorf("%w: %s %s", database.ErrUnavailable, file.Name(), movedMessage)
}
