// Package guard detects that the files of a SQLite database were removed, replaced, truncated or overwritten while
// programs use it, which SQLite does not check. It only reads the files: it runs no SQL, opens no database and repairs
// nothing.
//
// Start with Files, which guards the files of an open database. File is one of them, and WALIndex is what SQLite
// records about the WAL. CheckShared and CheckUse check whether other programs have a database open before SQLite
// touches it.
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

// sqliteMagic is the header string of every SQLite database.
const sqliteMagic = "SQLite format 3\x00"

// Files guards the files of one open database. What SQLite commits to removed files is lost when the process ends, and
// what it writes to replaced ones corrupts them. Other processes may legitimately change the files, so Files compares
// them with each other and with the wal-index, in which SQLite records every legitimate change.
type Files struct {
	database *File
	wal      *File
	index    *File
	mutex    sync.Mutex
	// seen is the wal-index, and size and generation are those of the database file, at the last successful check.
	seen       WALIndex
	checked    time.Time
	size       int64
	generation uint32
	// scratch is the buffer for reads.
	scratch [walIndexSize]byte
	// changed is not nil once a file was changed. Only a restart can resolve that.
	changed error
}

// Watch guards the files of a database that SQLite has open. It returns a file system error, or ErrUnavailable if one
// of them is not a regular file.
func Watch(file *File) (*Files, error) {
	wal, err := open(file.Name()+"-wal", moveAway)
	if err != nil {
		return nil, err
	}
	index, err := open(file.Name()+"-shm", moveAway)
	if err != nil {
		return nil, errors.Join(err, wal.Close())
	}
	return &Files{database: file, wal: wal, index: index}, nil
}

// CheckGeneration is Files.CheckGeneration for a database whose files are not guarded.
func (f *File) CheckGeneration(read func() (uint32, error)) error {
	return (&Files{database: f}).CheckGeneration(read)
}

// CheckGeneration compares the generation in the database file with the one that SQLite reads, which comes from the WAL
// if the page is there. A checkpoint copies one generation at a time, so the file is at most one behind. It returns
// ErrUnavailable if the files do not belong together, or the error of read.
func (f *Files) CheckGeneration(read func() (uint32, error)) error {
	for range maxReads {
		before, err := f.readGeneration()
		if err != nil {
			return err
		}
		current, err := read()
		if err != nil {
			return err
		}
		after, err := f.readGeneration()
		if err != nil {
			return err
		}
		if current == after || current == after+1 {
			return nil
		}
		if before == after {
			return f.markChanged(f.database)
		}
	}
	return inconsistentError(f.database)
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
	isRecent := f.changed == nil && time.Since(f.checked) < recent
	f.mutex.Unlock()
	if isRecent {
		return nil
	}
	return f.Check()
}

// Inspect is Check that also returns the wal-index.
func (f *Files) Inspect() (WALIndex, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	// A failed check must not count as a recent one.
	f.checked = time.Time{}
	if f.changed != nil {
		return WALIndex{}, f.changed
	}
	size, err := f.database.check()
	if err != nil {
		return WALIndex{}, err
	}
	for _, file := range [...]*File{f.wal, f.index} {
		if _, err := file.check(); err != nil {
			return WALIndex{}, err
		}
	}
	index, err := f.checkWAL()
	if err != nil {
		return WALIndex{}, err
	}
	if err := f.checkDatabase(size, index); err != nil {
		return WALIndex{}, err
	}
	f.checked = time.Now()
	return index, nil
}

// checkDatabase compares the database file with its state at the last check. Checkpoints enlarge it, or shrink it after
// a VACUUM to the size in the wal-index, and raise the generation once per reset of the WAL. SQLite's own file change
// counter is not updated in WAL mode.
func (f *Files) checkDatabase(size int64, index WALIndex) error {
	generation, err := f.readGeneration()
	if err != nil {
		return err
	}
	isShort := size < f.size && size < int64(index.pages)*index.PageSize
	if isShort || generation < f.generation {
		return f.markChanged(f.database)
	}
	f.size, f.generation = size, generation
	return nil
}

// readGeneration reads the generation, which is SQLite's user_version, from the database header, and checks that the
// file is a database.
func (f *Files) readGeneration() (uint32, error) {
	const userVersion = 60
	header := f.scratch[:userVersion+4]
	ok, err := readFull(f.database.File, header, 0)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", database.ErrUnavailable, err)
	}
	if !ok || string(header[:len(sqliteMagic)]) != sqliteMagic {
		return 0, f.markChanged(f.database)
	}
	return binary.BigEndian.Uint32(header[userVersion:]), nil
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
		index, err := readWALIndex(f.index.File, f.scratch[:])
		if errors.Is(err, errTorn) {
			waitToReread(number)
			continue
		}
		if err != nil {
			return WALIndex{}, fmt.Errorf("%w: %w", database.ErrUnavailable, err)
		}
		ok, err := f.isConsistent(index)
		if err != nil {
			return WALIndex{}, fmt.Errorf("%w: %w", database.ErrUnavailable, err)
		}
		if ok && index.salts == f.seen.salts && index.Frames < f.seen.Frames {
			return WALIndex{}, f.markChanged(f.index)
		}
		if ok {
			f.seen = index
			return index, nil
		}
		if again, err := readWALIndex(f.index.File, f.scratch[:]); err == nil && again == index {
			return WALIndex{}, f.markChanged(f.wal)
		}
	}
	return WALIndex{}, inconsistentError(f.index)
}

// IsBackfilled reports whether a checkpoint has copied all frames of the WAL. The caller must hold the write lock, so
// that the WAL does not change. It returns ErrUnavailable.
func (f *Files) IsBackfilled() (bool, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	index, err := readWALIndex(f.index.File, f.scratch[:])
	if err != nil {
		return false, fmt.Errorf("%w: %w", database.ErrUnavailable, err)
	}
	return index.Frames == index.Backfilled, nil
}

// isConsistent reports whether the WAL contains the last committed frame and still has the one that was last at the
// previous check: a WAL that was truncated and then appended to has a hole there.
func (f *Files) isConsistent(index WALIndex) (bool, error) {
	ok, err := index.isWALOf(f.wal.File, f.scratch[:])
	if !ok || err != nil || f.seen.salts != index.salts || f.seen.Frames == index.Frames {
		return ok, err
	}
	return f.seen.isWALOf(f.wal.File, f.scratch[:])
}

// Database returns the database file.
func (f *Files) Database() *File { return f.database }

func (f *Files) markChanged(file *File) error {
	f.changed = file.ChangedError()
	return f.changed
}

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
