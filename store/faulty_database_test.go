package store_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"gorm.io/gorm"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
)

type statements func(tx *gorm.DB) error

// fault is called instead of a transaction, which it may run.
type fault func(run func(statements) error, what statements) error

// faultyDatabase is a SQLite database with faults injected into its next transactions. It records the batches.
type faultyDatabase struct {
	database.Database
	// path is that of the database, and keyset that of its keyset file.
	path, keyset string

	mutex sync.Mutex
	// commits and changes are the faults of the next batches and of the next other transactions.
	commits, changes []fault
	// maxPKs is the maximum number of pks that a batch gets; 0 for no limit.
	maxPKs int
	// refusal is what CanStore returns.
	refusal error
	// committed holds the number of pks that each batch requested.
	committed  []int
	maintained int
	// elsewhere is the database that reads go to; nil for this one.
	elsewhere database.Database
	// readsElsewhere is the number of further reads that do; 0 or less for all.
	readsElsewhere int
}

// newFaulty opens a store over a faulty database. Both are closed when the test ends.
func newFaulty(t *testing.T) (*store.Store, *faultyDatabase) {
	t.Helper()
	return newFaultyIn(t, t.TempDir())
}

// newFaultyIn is newFaulty in a directory, which may have a database and a keyset file.
func newFaultyIn(t *testing.T, dir string) (*store.Store, *faultyDatabase) {
	t.Helper()
	path, keyset := filepath.Join(dir, "test.db"), filepath.Join(dir, "keyset.json")
	db, err := sqlite.Create(t.Context(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	faulty := &faultyDatabase{Database: db, path: path, keyset: keyset}
	opened, err := store.Create(t.Context(), faulty, keyset)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened, faulty
}

// copied opens another store over a copy of the database, with the same master keys.
func (f *faultyDatabase) copied(t *testing.T) (*store.Store, *faultyDatabase) {
	t.Helper()
	dir := t.TempDir()
	execute(t, f.path, "VACUUM INTO '"+filepath.Join(dir, "test.db")+"'")
	if err := os.Link(f.keyset, filepath.Join(dir, "keyset.json")); err != nil {
		t.Fatal(err)
	}
	return newFaultyIn(t, dir)
}

// next removes and returns the fault of the next transaction from a list.
func (f *faultyDatabase) next(list *[]fault) fault {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(*list) == 0 {
		return passing
	}
	first := (*list)[0]
	*list = (*list)[1:]
	return first
}

func (f *faultyDatabase) Reader() *gorm.DB {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.elsewhere == nil {
		return f.Database.Reader()
	}
	elsewhere := f.elsewhere
	if f.readsElsewhere--; f.readsElsewhere == 0 {
		f.elsewhere = nil
	}
	return elsewhere.Reader()
}

func (f *faultyDatabase) Change(ctx context.Context, what func(tx *gorm.DB) error) error {
	return f.next(&f.changes)(func(what statements) error { return f.Database.Change(ctx, what) }, what)
}

func (f *faultyDatabase) ChangeAlone(ctx context.Context, what func(tx *gorm.DB) error) error {
	return f.next(&f.changes)(func(what statements) error { return f.Database.ChangeAlone(ctx, what) }, what)
}

func (f *faultyDatabase) Batches(ctx context.Context) (database.Batches, error) {
	batches, err := f.Database.Batches(ctx)
	return &faultyBatches{Batches: batches, database: f}, err
}

type faultyBatches struct {
	database.Batches
	database *faultyDatabase
}

func (b *faultyBatches) Commit(ctx context.Context, pks int, what func(database.Batch) error) error {
	b.database.count(func(f *faultyDatabase) { f.committed = append(f.committed, 0) })
	batch := faultyBatch{database: b.database}
	run := func(what statements) error {
		return b.Batches.Commit(ctx, pks, func(begun database.Batch) error {
			batch.Batch = begun
			return what(begun.DB())
		})
	}
	return b.database.next(&b.database.commits)(run, func(*gorm.DB) error { return what(batch) })
}

type faultyBatch struct {
	database.Batch
	database *faultyDatabase
}

func (b faultyBatch) ReservePKs(count int) ([]int32, error) {
	var limit int
	b.database.count(func(f *faultyDatabase) {
		f.committed[len(f.committed)-1] = count
		limit = f.maxPKs
	})
	if limit > 0 {
		count = min(count, limit)
	}
	return b.Batch.ReservePKs(count)
}

func (b faultyBatch) CanStore() (err error) {
	b.database.count(func(f *faultyDatabase) { err = f.refusal })
	return err
}

func (b *faultyBatches) Maintain(ctx context.Context) {
	b.database.count(func(f *faultyDatabase) { f.maintained++ })
	b.Batches.Maintain(ctx)
}

func (f *faultyDatabase) count(change func(f *faultyDatabase)) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	change(f)
}

// sizes returns the number of pks that each batch requested so far, and the number of calls to Maintain.
func (f *faultyDatabase) sizes() (sizes []int, maintained int) {
	f.count(func(f *faultyDatabase) { sizes, maintained = append(sizes, f.committed...), f.maintained })
	return sizes, maintained
}

// holdUp starts a create whose commit waits until release is called. The faults apply to the commits after it.
func (f *faultyDatabase) holdUp(
	t *testing.T, opened *store.Store, faults ...fault,
) (first store.Submission, release func()) {
	t.Helper()
	begun, released := make(chan struct{}), make(chan struct{})
	f.count(func(f *faultyDatabase) {
		f.commits = append([]fault{func(run func(statements) error, what statements) error {
			close(begun)
			<-released
			return run(what)
		}}, faults...)
	})
	first = opened.Submit(t.Context(), "first of "+store.RandomAlphanumeric(10))
	<-begun
	return first, sync.OnceFunc(func() { close(released) })
}

// inOneQueue queues creates in order behind a first one that it blocks until all wait. The faults apply to the commits
// after the first. It returns the errors of the creates in the same order.
func (f *faultyDatabase) inOneQueue(
	t *testing.T, opened *store.Store, count int, create func(i int) error, faults ...fault,
) []error {
	t.Helper()
	first, release := f.holdUp(t, opened, faults...)
	errs := make([]error, count)
	var group sync.WaitGroup
	for i := range count {
		group.Go(func() { errs[i] = create(i) })
		opened.AwaitQueue(i + 1)
	}
	release()
	group.Wait()
	if err := first.Wait(); err != nil {
		t.Errorf("the first create: %v", err)
	}
	return errs
}

// failNextChange injects a fault into the next transaction that is not a batch.
func (f *faultyDatabase) failNextChange(next fault) {
	f.count(func(f *faultyDatabase) { f.changes = []fault{next} })
}

var errRolledBack = errors.New("rolled back")

// passing runs statements without a fault.
func passing(run func(statements) error, what statements) error { return run(what) }

// rollingBack runs statements and rolls them back.
func rollingBack(run func(statements) error, what statements) error {
	return failingLate(errRolledBack)(run, what)
}

// failing returns a fault that stores nothing.
func failing(err error) fault {
	return func(func(statements) error, statements) error { return err }
}

// failingLate returns a fault after the statements.
func failingLate(err error) fault {
	return func(run func(statements) error, what statements) error {
		return run(func(tx *gorm.DB) error { return errors.Join(what(tx), err) })
	}
}

// losing returns a fault after the commit.
func losing(err error) fault {
	return func(run func(statements) error, what statements) error { return errors.Join(run(what), err) }
}

// expectEvents checks the number of events of each kind in want.
func expectEvents(t *testing.T, opened *store.Store, want map[store.EventKind]int) {
	t.Helper()
	got := map[store.EventKind]int{}
	for event, err := range opened.Events(t.Context(), store.Filter{}, store.EventCursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		got[event.Event]++
	}
	for kind := range want {
		if got[kind] != want[kind] {
			t.Errorf("%d events %q, want %d", got[kind], kind, want[kind])
		}
	}
}
