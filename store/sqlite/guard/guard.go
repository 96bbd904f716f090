// Package guard protects the files of an open SQLite database against changes by other means than SQLite. It reads the
// files and their locks, writes nothing, and knows no SQL.
//
// Start with Guard: every transaction that writes goes through Commit. The rest says how the files are compared.
package guard

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"example.com/providerd/store/database"
)

// Guard detects that the files of an open database were removed, replaced, truncated or overwritten while programs use
// it, which SQLite does not check. It only reads them. What SQLite commits to removed files is lost when the process
// ends, and what it writes to replaced ones corrupts them. Other processes may legitimately change the files, so it
// compares them with each other and with the wal-index, in which SQLite records every legitimate change.
type Guard struct {
	database, wal, index *File
	mutex                sync.Mutex
	// seen is the wal-index, and size and generation describe the database file, at the last successful check.
	seen WALIndex
	// samples are the samples of seen.
	samples    []sample
	checked    time.Time
	size       int64
	generation uint32
	// changed is not nil once a file was changed. Only a restart can resolve that.
	changed error
}

// Watch guards the files of an open database. It returns ErrUnavailable if one is not regular, or a file system error.
func Watch(file *File) (*Guard, error) {
	wal, err := Open(file.Name() + "-wal")
	if err != nil {
		return nil, err
	}
	index, err := Open(file.Name() + "-shm")
	if err != nil {
		return nil, errors.Join(err, wal.Close())
	}
	return &Guard{database: file, wal: wal, index: index}, nil
}

// Check returns ErrUnavailable if a file was removed, replaced or changed. What was read before does not count then.
func (g *Guard) Check() error {
	_, err := g.Inspect()
	return err
}

// recent is how old a check before a transaction may be. Under load, it is the one after the previous commit.
const recent = 10 * time.Millisecond

// CheckUnlessRecent is Check, unless a check is recent, for transactions that check again before they commit.
func (g *Guard) CheckUnlessRecent() error {
	g.mutex.Lock()
	isRecent := time.Since(g.checked) < recent
	g.mutex.Unlock()
	if isRecent {
		return nil
	}
	return g.Check()
}

// checkBeforeCommit is Check at the end of a transaction: what was read through a changed wal-index must not be
// written. Its header shows that, because the transaction itself has not written it yet.
func (g *Guard) checkBeforeCommit() error {
	index, isWhole, err := readWALIndex(g.index)
	g.mutex.Lock()
	isSame := g.changed == nil && isWhole && err == nil && index.withoutBackfill() == g.seen.withoutBackfill()
	g.mutex.Unlock()
	if isSame {
		return nil
	}
	return g.Check()
}

// Transaction is a transaction that writes.
type Transaction struct {
	// Begin begins it with the write lock.
	Begin func() error
	// Run runs its statements. If resets is set, the transaction resets the WAL, and must write another generation first.
	Run func(resets bool) error
	// Commit commits it. Its error says whether the outcome is unknown.
	Commit func() error
}

// Commit carries out a transaction and returns the wal-index after it. It checks the files before, unless they were
// checked very recently, so that nothing is corrupted; before it commits; and after, so that nothing is acknowledged
// that is lost. After an error the caller rolls back what has begun.
func (g *Guard) Commit(t Transaction) (index WALIndex, err error) {
	if err := g.CheckUnlessRecent(); err != nil {
		return index, err
	}
	if err := t.Begin(); err != nil {
		return index, g.explain(fmt.Errorf("begin: %w", err))
	}
	before, isWhole, err := readWALIndex(g.index)
	if err != nil {
		return index, err
	}
	if err := t.Run(isWhole && before.Frames == before.Backfilled); err != nil {
		return index, g.explain(err)
	}
	if err := g.checkBeforeCommit(); err != nil {
		return index, err
	}
	if err := t.Commit(); err != nil {
		return index, fmt.Errorf("commit: %w", err)
	}
	if index, err = g.Inspect(); err != nil {
		return index, fmt.Errorf("%w: %w", database.ErrOutcomeUnknown, err)
	}
	return index, nil
}

// explain returns the error of check after SQLite has failed: changed files may be the reason, also if they were
// unchanged before the transaction. Otherwise it returns the error of SQLite.
func (g *Guard) explain(err error) error {
	if errors.Is(err, database.ErrUnavailable) {
		return cmp.Or(g.Check(), err) //nolint:wrapcheck // They are wrapped already.
	}
	return err
}

// Inspect is Check that also returns the wal-index.
func (g *Guard) Inspect() (index WALIndex, err error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	// A failed check must not count as a recent one.
	g.checked = time.Time{}
	if g.changed != nil {
		return index, g.changed
	}
	index, err = g.inspectFiles()
	if _, isChanged := errors.AsType[changedError](err); isChanged {
		g.changed = err
	}
	if err == nil {
		g.checked = time.Now()
	}
	return index, err
}

func (g *Guard) inspectFiles() (index WALIndex, err error) {
	size, err := g.database.check()
	if err != nil {
		return index, err
	}
	for _, file := range [...]*File{g.wal, g.index} {
		if _, err := file.check(); err != nil {
			return index, err
		}
	}
	if index, err = g.checkWAL(); err != nil {
		return index, err
	}
	return index, g.checkDatabase(size, index)
}

// checkDatabase compares the database file with its state at the last check. Checkpoints enlarge it, or shrink it after
// a VACUUM to the size in the wal-index, and raise the generation once per reset of the WAL. SQLite's own file change
// counter is not updated in WAL mode. A file that is truncated during a checkpoint can have its size again before this
// reads it.
func (g *Guard) checkDatabase(size int64, index WALIndex) error {
	generation, err := g.database.generation()
	if err != nil {
		return err
	}
	isShort := size < g.size && size < int64(index.pages)*index.PageSize
	if isShort || generation < g.generation {
		return changedError{g.database.Name()}
	}
	g.size, g.generation = size, generation
	return nil
}

const (
	// maxReads limits the reads of a file that SQLite keeps changing to about one second.
	maxReads = 300
	// eagerReads is how many of them follow each other without a pause, because SQLite is usually done immediately. Later
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
func (g *Guard) checkWAL() (WALIndex, error) {
	for number := range maxReads {
		index, isWhole, err := readWALIndex(g.index)
		if err != nil {
			return index, err
		}
		if !isWhole {
			waitToReread(number)
			continue
		}
		samples, changed, err := g.compare(index)
		if err != nil {
			return index, err
		}
		if changed == nil {
			g.seen, g.samples = index, samples
			return index, nil
		}
		if again, isWhole, err := readWALIndex(g.index); err == nil && isWhole && again == index {
			return index, changedError{changed.Name()}
		}
	}
	return WALIndex{}, inconsistentError(g.index)
}

// compare returns samples of the page numbers, or the file that was changed: the WAL must contain the last committed
// frame and still have the one that was last at the previous check, because a WAL that was truncated and then appended
// to has a hole there. The wal-index must have the same page numbers as then: after an older copy was written over it,
// the next commit writes a new header, but each block of the copy lacks the numbers of later frames.
func (g *Guard) compare(index WALIndex) (samples []sample, changed *File, err error) {
	if begins, err := index.begins(g.wal); err != nil || !begins {
		return nil, g.wal, err
	}
	page, err := index.lastPage(g.wal)
	if err != nil || page == 0 && index.Frames > 0 {
		return nil, g.wal, err
	}
	samples, err = index.samples(g.index)
	if err != nil || page != 0 && samples[len(samples)-1][len(sample{})-1] != page {
		return nil, g.index, err
	}
	changed, err = g.compareSeen(index, samples)
	return samples, changed, err
}

// compareSeen compares what was seen at the previous check.
func (g *Guard) compareSeen(index WALIndex, samples []sample) (changed *File, err error) {
	if g.seen.salts != index.salts || g.seen.Frames == 0 {
		return nil, nil
	}
	if index.Frames < g.seen.Frames {
		return g.index, nil
	}
	if page, err := g.seen.lastPage(g.wal); err != nil || page == 0 {
		return g.wal, err
	}
	block, count := g.seen.lastPlace()
	var last sample
	if err := last.read(g.index, block, count); err != nil {
		return nil, err
	}
	if last != g.samples[block] || !slices.Equal(samples[:block], g.samples[:block]) {
		return g.index, nil
	}
	return nil, nil
}

func inconsistentError(file *File) error {
	return fmt.Errorf("%w: cannot get a consistent read of %s; try again", database.ErrUnavailable, file.Name())
}

// Close closes the -wal and -shm files. It leaves the database file open, which the caller opened.
func (g *Guard) Close() error {
	return database.Wrap("close the WAL files", errors.Join(g.index.Close(), g.wal.Close()))
}
