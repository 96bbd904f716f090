package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"example.com/providerd/store/database"
)

// sqliteMagic is how every SQLite database begins.
const sqliteMagic = "SQLite format 3\x00"

// What the operator is told of each kind of harm.
const (
	whenMoved = "was removed or replaced while in use; stop every program that uses the database, put the right " +
		"file back, and start again"
	whenChanged = "is not what SQLite left there; stop every program that uses the database, put the right files back " +
		"(for an older copy, remove those that end in -wal and -shm), and start again"
)

// guard notices that the files of a database are no longer those that SQLite works on: removed, replaced, cut off or
// overwritten. SQLite does not look; what it commits then is lost with the process, or spoils what is there. Other
// processes change the files lawfully, so that the guard compares the files with each other and with the wal-index, in
// which SQLite notes each lawful change.
type guard struct {
	database *guardedFile
	wal      *guardedFile
	index    *guardedFile
	mutex    sync.Mutex
	// seen is the WAL when it was last in order, at the time checked, and size and generation are those of the database.
	seen       walIndex
	checked    time.Time
	size       int64
	generation uint32
	// scratch is what is read into.
	scratch [walIndexSize]byte
	// changed is not nil once a file was changed, which nothing but a new start can put right.
	changed error
}

// guardedFile is a file that is to stay what its path leads to. It is kept open as long as SQLite has it: to close it
// would release the locks that SQLite holds.
type guardedFile struct {
	*os.File
	opened syscall.Stat_t
}

// What to do about something else in the place of a file.
const (
	putDatabase = "put the database in its place, or name another one"
	moveAway    = "move it away"
)

// openGuarded returns ErrUnavailable, with the remedy, for what is not a regular file, or an error of the file system.
func openGuarded(path, remedy string) (*guardedFile, error) {
	// A FIFO is not waited for.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("look at the files of the database: %w", err)
	}
	guarded := &guardedFile{File: file}
	if err := syscall.Fstat(int(file.Fd()), &guarded.opened); err != nil {
		return nil, errors.Join(fmt.Errorf("look at the files of the database: %w", err), file.Close())
	}
	if guarded.opened.Mode&syscall.S_IFMT != syscall.S_IFREG {
		err := fmt.Errorf("%w: %s is not a regular file; %s", database.ErrUnavailable, path, remedy)
		return nil, errors.Join(err, file.Close())
	}
	return guarded, nil
}

// check returns the size of the file, or ErrUnavailable where its path does not lead to it any more. It is called with
// every commit, and so spares what os.Stat allocates.
func (f *guardedFile) check() (size int64, err error) {
	var now syscall.Stat_t
	err = syscall.Stat(f.Name(), &now)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (now.Dev != f.opened.Dev || now.Ino != f.opened.Ino) {
		return 0, fmt.Errorf("%w: %s %s", database.ErrUnavailable, f.Name(), whenMoved)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: look at %s: %w", database.ErrUnavailable, f.Name(), err)
	}
	return now.Size, nil
}

// newGuard watches the files of a database that is open.
func newGuard(file *guardedFile) (*guard, error) {
	wal, err := openGuarded(file.Name()+"-wal", moveAway)
	if err != nil {
		return nil, err
	}
	index, err := openGuarded(file.Name()+"-shm", moveAway)
	if err != nil {
		return nil, errors.Join(err, wal.Close())
	}
	return &guard{database: file, wal: wal, index: index}, nil
}

// checkGeneration compares the generation in the file of the database with the one that SQLite reads, which is from the
// WAL where that has it. A checkpoint copies one generation at a time, so that the file is one behind at most. It
// returns ErrUnavailable for files that do not belong together.
func (g *guard) checkGeneration(ctx context.Context, db *sql.DB) error {
	for range maxLooks {
		before, err := g.readGeneration()
		if err != nil {
			return err
		}
		var current uint32
		if err := db.QueryRowContext(ctx, selectGeneration).Scan(&current); err != nil {
			return fmt.Errorf("read the generation of the database: %w", classify(err))
		}
		after, err := g.readGeneration()
		if err != nil {
			return err
		}
		if current == after || current == after+1 {
			return nil
		}
		if before == after {
			return g.isChanged(g.database)
		}
	}
	return g.unreadable()
}

// check returns ErrUnavailable where a file was removed, replaced or changed. What is stored must be so before it is
// written, so that nothing is spoilt, and after, so that nothing is acknowledged that is lost.
func (g *guard) check() error {
	_, err := g.look()
	return err
}

// recent is how old a check may be that stands before a transaction. Under load, it is the one after the last commit.
const recent = 10 * time.Millisecond

// checkBefore is check before a transaction, whose commit is checked in any case.
func (g *guard) checkBefore() error {
	g.mutex.Lock()
	isRecent := g.changed == nil && time.Since(g.checked) < recent
	g.mutex.Unlock()
	if isRecent {
		return nil
	}
	return g.check()
}

// look is check that also returns what SQLite knows of the WAL.
func (g *guard) look() (walIndex, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	// What fails is no check that the next transaction could rely on.
	g.checked = time.Time{}
	if g.changed != nil {
		return walIndex{}, g.changed
	}
	size, err := g.database.check()
	if err != nil {
		return walIndex{}, err
	}
	for _, file := range [...]*guardedFile{g.wal, g.index} {
		if _, err := file.check(); err != nil {
			return walIndex{}, err
		}
	}
	index, err := g.checkWAL()
	if err != nil {
		return walIndex{}, err
	}
	if err := g.checkDatabase(size, index); err != nil {
		return walIndex{}, err
	}
	g.checked = time.Now()
	return index, nil
}

// checkDatabase compares the file of the database with what it was before. Checkpoints make it grow, or after a VACUUM
// as short as SQLite says, and, once for each reset of the WAL, raise the generation; SQLite's own change counter
// stands still in WAL mode.
func (g *guard) checkDatabase(size int64, index walIndex) error {
	generation, err := g.readGeneration()
	if err != nil {
		return err
	}
	isShort := size < g.size && size < int64(index.pages)*index.pageSize
	if isShort || generation < g.generation {
		return g.isChanged(g.database)
	}
	g.size, g.generation = size, generation
	return nil
}

// readGeneration reads the generation, which is SQLite's user_version, and makes sure that the file is a database.
func (g *guard) readGeneration() (uint32, error) {
	const userVersion = 60
	header := g.scratch[:userVersion+4]
	ok, err := readWhole(g.database.File, header, 0)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", database.ErrUnavailable, err)
	}
	if !ok || string(header[:len(sqliteMagic)]) != sqliteMagic {
		return 0, g.isChanged(g.database)
	}
	return binary.BigEndian.Uint32(header[userVersion:]), nil
}

const (
	// maxLooks bounds how often a file is read that SQLite keeps changing meanwhile: for one second.
	maxLooks = 300
	// hurriedLooks of them come at once, as SQLite needs no longer. Before each of the others there is a pause: whoever
	// changes the file may have lost the processor.
	hurriedLooks = 100
	lookPause    = 5 * time.Millisecond
)

func awaitLook(number int) {
	if number < hurriedLooks {
		runtime.Gosched()
		return
	}
	<-time.After(lookPause)
}

// checkWAL compares the WAL with the wal-index. SQLite writes the wal-index before it resets the WAL and after it adds
// to it, so that a difference counts only where the wal-index stays the same.
func (g *guard) checkWAL() (walIndex, error) {
	for number := range maxLooks {
		index, err := readWALIndex(g.index.File, g.scratch[:])
		if errors.Is(err, errTorn) {
			awaitLook(number)
			continue
		}
		if err != nil {
			return walIndex{}, fmt.Errorf("%w: %w", database.ErrUnavailable, err)
		}
		ok, err := g.isInOrder(index)
		if err != nil {
			return walIndex{}, fmt.Errorf("%w: %w", database.ErrUnavailable, err)
		}
		if ok && index.salts == g.seen.salts && index.frames < g.seen.frames {
			return walIndex{}, g.isChanged(g.index)
		}
		if ok {
			g.seen = index
			return index, nil
		}
		if again, err := readWALIndex(g.index.File, g.scratch[:]); err == nil && again == index {
			return walIndex{}, g.isChanged(g.wal)
		}
	}
	return walIndex{}, g.unreadable()
}

// isCopied tells whether a checkpoint has copied all of the WAL. Whoever asks has the lock to write, so that the WAL
// stays as it is.
func (g *guard) isCopied() (bool, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	index, err := readWALIndex(g.index.File, g.scratch[:])
	if err != nil {
		return false, fmt.Errorf("%w: %w", database.ErrUnavailable, err)
	}
	return index.frames == index.backfilled, nil
}

// isInOrder tells whether the WAL has the frame that SQLite committed last, and still the one that was the last before:
// a WAL that is cut off and written on has a hole there.
func (g *guard) isInOrder(index walIndex) (bool, error) {
	ok, err := index.isWALOf(g.wal.File, g.scratch[:])
	if !ok || err != nil || g.seen.salts != index.salts || g.seen.frames == index.frames {
		return ok, err
	}
	return g.seen.isWALOf(g.wal.File, g.scratch[:])
}

func (g *guard) isChanged(file *guardedFile) error {
	g.changed = fmt.Errorf("%w: %s %s", database.ErrUnavailable, file.Name(), whenChanged)
	return g.changed
}

func (g *guard) unreadable() error {
	return fmt.Errorf("%w: %s changes too often to be read", database.ErrUnavailable, g.index.Name())
}

// close leaves the file of the database open, which was there before.
func (g *guard) close() error {
	if err := errors.Join(g.index.Close(), g.wal.Close()); err != nil {
		return fmt.Errorf("close the files of the WAL: %w", err)
	}
	return nil
}
