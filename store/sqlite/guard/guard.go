// Package guard detects that the files of a SQLite database were removed, replaced, truncated or overwritten while
// programs use it, which SQLite does not check. It only reads the files: it runs no SQL, opens no database and repairs
// nothing.
//
// Start with Files, which guards the files of an open database. File is one of them, and WALIndex is what SQLite
// records about the WAL. CheckUse checks whether other programs have a database open before SQLite touches it.
package guard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"example.com/providerd/store/database"
)

// Files guards the files of one open database. What SQLite commits to removed files is lost when the process ends, and
// what it writes to replaced ones corrupts them. Other processes may legitimately change the files, so Files compares
// them with each other and with the wal-index, in which SQLite records every legitimate change.
type Files struct {
	database, wal, index *File
	mutex                sync.Mutex
	// seen is the wal-index, and size and generation are those of the database file, at the last successful check.
	seen       WALIndex
	checked    time.Time
	size       int64
	generation uint32
	// changed is not nil once a file was changed. Only a restart can resolve that.
	changed error
}

// Watch guards the files of a database that SQLite has open. It returns a file system error, or ErrUnavailable if one
// of them is not a regular file.
func Watch(file *File) (*Files, error) {
	wal, err := Open(file.Name() + "-wal")
	if err != nil {
		return nil, err
	}
	index, err := Open(file.Name() + "-shm")
	if err != nil {
		return nil, errors.Join(err, wal.Close())
	}
	return &Files{database: file, wal: wal, index: index}, nil
}

// CheckGeneration compares the generation in the database file with the one that SQLite reads, which comes from the WAL
// if the page is there. A checkpoint copies one generation at a time, so the file is at most one behind. It returns
// ErrUnavailable if the files do not belong together, or the error of read.
func (f *File) CheckGeneration(read func() (uint32, error)) error {
	for number := range maxReads {
		before, err := f.generation()
		if err != nil {
			return err
		}
		current, err := read()
		if err != nil {
			return err
		}
		after, err := f.generation()
		if err != nil {
			return err
		}
		if current == after || current == after+1 {
			return nil
		}
		if before == after {
			return f.ChangedError()
		}
		waitToReread(number)
	}
	return inconsistentError(f)
}

// generation reads the generation, which is SQLite's user_version, from the header of the database, and checks that the
// file is a database.
func (f *File) generation() (uint32, error) {
	const magic, userVersion = "SQLite format 3\x00", 60
	var header [userVersion + 4]byte
	isLong, err := f.read(header[:], 0)
	if err != nil {
		return 0, err
	}
	if !isLong || string(header[:len(magic)]) != magic {
		return 0, f.ChangedError()
	}
	return binary.BigEndian.Uint32(header[userVersion:]), nil
}

// Check returns ErrUnavailable if a file was removed, replaced or changed. Callers check before they write, so that
// nothing is corrupted, and after, so that nothing is acknowledged that is lost.
func (f *Files) Check() error {
	_, err := f.Inspect()
	return err
}

// recent is how old a check may be to count before a transaction. Under load, it is the check after the previous
// commit.
const recent = 10 * time.Millisecond

// CheckUnlessRecent is Check, unless the files were checked very recently. It is for use before a transaction whose
// commit is followed by a Check.
func (f *Files) CheckUnlessRecent() error {
	f.mutex.Lock()
	isRecent := time.Since(f.checked) < recent
	f.mutex.Unlock()
	if isRecent {
		return nil
	}
	return f.Check()
}

// Inspect is Check that also returns the wal-index.
func (f *Files) Inspect() (index WALIndex, err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	// A failed check must not count as a recent one.
	f.checked = time.Time{}
	if f.changed != nil {
		return index, f.changed
	}
	index, err = f.inspect()
	if _, isChanged := errors.AsType[changedError](err); isChanged {
		f.changed = err
	}
	if err == nil {
		f.checked = time.Now()
	}
	return index, err
}

func (f *Files) inspect() (index WALIndex, err error) {
	size, err := f.database.check()
	if err != nil {
		return index, err
	}
	for _, file := range [...]*File{f.wal, f.index} {
		if _, err := file.check(); err != nil {
			return index, err
		}
	}
	if index, err = f.checkWAL(); err != nil {
		return index, err
	}
	return index, f.checkDatabase(size, index)
}

// checkDatabase compares the database file with its state at the last check. Checkpoints enlarge it, or shrink it after
// a VACUUM to the size in the wal-index, and raise the generation once per reset of the WAL. SQLite's own file change
// counter is not updated in WAL mode.
func (f *Files) checkDatabase(size int64, index WALIndex) error {
	generation, err := f.database.generation()
	if err != nil {
		return err
	}
	isShort := size < f.size && size < int64(index.pages)*index.PageSize
	if isShort || generation < f.generation {
		return f.database.ChangedError()
	}
	f.size, f.generation = size, generation
	return nil
}

const (
	// maxReads limits the reads of a file that SQLite keeps changing to about one second.
	maxReads = 300
	// eagerReads is how many of them follow each other without a pause, because SQLite is usually done at once. Later
	// reads wait, because the writing process may not be scheduled.
	eagerReads = 100
	readPause  = 5 * time.Millisecond
)

func waitToReread(number int) {
	if number < eagerReads {
		runtime.Gosched()
		return
	}
	<-time.After(readPause)
}

// checkWAL compares the WAL with the wal-index. SQLite updates the wal-index before it resets the WAL, and after it
// appends to it. A mismatch therefore counts only if the wal-index did not change while both were read.
func (f *Files) checkWAL() (WALIndex, error) {
	for number := range maxReads {
		index, isWhole, err := readWALIndex(f.index)
		if err != nil {
			return index, err
		}
		if !isWhole {
			waitToReread(number)
			continue
		}
		isConsistent, err := f.isConsistent(index)
		switch {
		case err != nil:
			return index, err
		case isConsistent && index.salts == f.seen.salts && index.Frames < f.seen.Frames:
			return index, f.index.ChangedError()
		case isConsistent:
			f.seen = index
			return index, nil
		}
		if again, isWhole, err := readWALIndex(f.index); err == nil && isWhole && again == index {
			return index, f.wal.ChangedError()
		}
	}
	return WALIndex{}, inconsistentError(f.index)
}

// isConsistent reports whether the WAL contains the last committed frame and still has the one that was last at the
// previous check: a WAL that was truncated and then appended to has a hole there.
func (f *Files) isConsistent(index WALIndex) (bool, error) {
	isConsistent, err := index.isIndexOf(f.wal)
	if !isConsistent || err != nil || f.seen.salts != index.salts || f.seen.Frames == index.Frames {
		return isConsistent, err
	}
	return f.seen.isIndexOf(f.wal)
}

// IsBackfilled reports whether a checkpoint has copied all frames of the WAL. The caller must hold the write lock, so
// that the WAL does not change. It returns ErrUnavailable.
func (f *Files) IsBackfilled() (bool, error) {
	index, isWhole, err := readWALIndex(f.index)
	return isWhole && index.Frames == index.Backfilled, err
}

// Database returns the database file.
func (f *Files) Database() *File { return f.database }

func inconsistentError(file *File) error {
	return fmt.Errorf("%w: cannot get a consistent read of %s; try again", database.ErrUnavailable, file.Name())
}

// Close closes the -wal and -shm files. It leaves the database file open, which the caller opened.
func (f *Files) Close() error {
	if err := errors.Join(f.index.Close(), f.wal.Close()); err != nil {
		return fmt.Errorf("close the WAL files: %w", err)
	}
	return nil
}
