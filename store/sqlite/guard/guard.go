// Package guard notices that the files of a SQLite database were removed, replaced, cut off or overwritten while
// programs use it, which SQLite does not look for. It reads the files alone: it runs no SQL, opens no database and
// repairs nothing.
//
// Start with Files, which watches the files of an open database. File is one of them, WALIndex what SQLite knows of its
// WAL, and CheckShared and CheckUse look for other programs before SQLite works on what it finds.
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

// sqliteMagic is how every SQLite database begins.
const sqliteMagic = "SQLite format 3\x00"

// Files notices that the files of a database are no longer those that SQLite works on: removed, replaced, cut off or
// overwritten. SQLite does not look; what it commits then is lost with the process, or spoils what is there. Other
// processes change the files lawfully, so that it compares the files with each other and with the wal-index, in
// which SQLite notes each lawful change.
type Files struct {
	database *File
	wal      *File
	index    *File
	mutex    sync.Mutex
	// seen is the WAL when it was last in order, at the time checked, and size and generation are those of the database.
	seen       WALIndex
	checked    time.Time
	size       int64
	generation uint32
	// scratch is what is read into.
	scratch [walIndexSize]byte
	// changed is not nil once a file was changed, which nothing but a new start can put right.
	changed error
}

// Watch watches the files of a database that SQLite has open. It returns an error of the file system, or ErrUnavailable
// for what is not a regular file.
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

// CheckGeneration is that of Files, for a database whose files are not watched.
func (f *File) CheckGeneration(read func() (uint32, error)) error {
	return (&Files{database: f}).CheckGeneration(read)
}

// CheckGeneration compares the generation in the file of the database with the one that SQLite reads, which is from the
// WAL where that has it. A checkpoint copies one generation at a time, so that the file is one behind at most. It
// returns ErrUnavailable for files that do not belong together, or the error of read.
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

// Check returns ErrUnavailable where a file was removed, replaced or changed. What is stored must be so before it is
// written, so that nothing is spoilt, and after, so that nothing is acknowledged that is lost.
func (f *Files) Check() error {
	_, err := f.Inspect()
	return err
}

// recent is how old a check may be that stands before a transaction. Under load, it is the one after the last commit.
const recent = 10 * time.Millisecond

// CheckUnlessRecent is Check before a transaction, whose commit is checked in any case.
func (f *Files) CheckUnlessRecent() error {
	f.mutex.Lock()
	isRecent := f.changed == nil && time.Since(f.checked) < recent
	f.mutex.Unlock()
	if isRecent {
		return nil
	}
	return f.Check()
}

// Inspect is Check that also returns what SQLite knows of the WAL.
func (f *Files) Inspect() (WALIndex, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	// What fails is no check that the next transaction could rely on.
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

// checkDatabase compares the file of the database with what it was before. Checkpoints make it grow, or after a VACUUM
// as short as SQLite says, and, once for each reset of the WAL, raise the generation; SQLite's own change counter
// stands still in WAL mode.
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

// readGeneration reads the generation, which is SQLite's user_version, and makes sure that the file is a database.
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
	// maxReads bounds how often a file is read that SQLite keeps changing meanwhile: for one second.
	maxReads = 300
	// eagerReads of them come at once, as SQLite needs no longer. Before each of the others there is a pause: whoever
	// changes the file may have lost the processor.
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

// checkWAL compares the WAL with the wal-index. SQLite writes the wal-index before it resets the WAL and after it adds
// to it, so that a difference counts only where the wal-index stays the same.
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

// IsBackfilled tells whether a checkpoint has copied all of the WAL. The caller has the lock to write, so that the WAL
// stays as it is. It returns ErrUnavailable.
func (f *Files) IsBackfilled() (bool, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	index, err := readWALIndex(f.index.File, f.scratch[:])
	if err != nil {
		return false, fmt.Errorf("%w: %w", database.ErrUnavailable, err)
	}
	return index.Frames == index.Backfilled, nil
}

// isConsistent tells whether the WAL has the frame that SQLite committed last, and still the one that was the last before:
// a WAL that is cut off and written on has a hole there.
func (f *Files) isConsistent(index WALIndex) (bool, error) {
	ok, err := index.isWALOf(f.wal.File, f.scratch[:])
	if !ok || err != nil || f.seen.salts != index.salts || f.seen.Frames == index.Frames {
		return ok, err
	}
	return f.seen.isWALOf(f.wal.File, f.scratch[:])
}

// Database returns the file of the database.
func (f *Files) Database() *File { return f.database }

func (f *Files) markChanged(file *File) error {
	f.changed = file.ChangedError()
	return f.changed
}

func inconsistentError(file *File) error {
	return fmt.Errorf("%w: cannot get a consistent read of %s; try again", database.ErrUnavailable, file.Name())
}

// Close leaves the file of the database open, which was there before.
func (f *Files) Close() error {
	if err := errors.Join(f.index.Close(), f.wal.Close()); err != nil {
		return fmt.Errorf("close the files of the WAL: %w", err)
	}
	return nil
}
