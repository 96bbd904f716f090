package store_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"gorm.io/gorm"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
)

type statements func(tx *gorm.DB) error

// fault stands in the place of a transaction, which it may run.
type fault func(run func(statements) error, what statements) error

// faultyDatabase is a SQLite database, of which the next transactions go wrong as a test says. It counts those of
// batches.
type faultyDatabase struct {
	database.Database
	path string

	mutex sync.Mutex
	// commits and changes are the faults of the transactions to come, of batches and others; those behind them have none.
	commits, changes []fault
	// mostPKs is how many pks a batch gets; 0 for as many as it asks for.
	mostPKs int
	// refusal is what CanStore returns.
	refusal error
	// committed has how many pks each batch asked for.
	committed  []int
	maintained int
	// elsewhere is the database that reads go to; nil for this one.
	elsewhere database.Database
	// readsElsewhere is how many more reads do; 0 or less for all.
	readsElsewhere int
}

// newFaulty opens a store over a faulty database. Both are closed with the test.
func newFaulty(t *testing.T) (*store.Store, *faultyDatabase) {
	t.Helper()
	folder := t.TempDir()
	return newFaultyIn(t, folder, filepath.Join(folder, "keyset.json"))
}

// newFaultyIn is newFaulty in a folder, with the keys of a file, which is made where there is none.
func newFaultyIn(t *testing.T, folder, keyset string) (*store.Store, *faultyDatabase) {
	t.Helper()
	path := filepath.Join(folder, "test.db")
	kept, err := sqlite.Create(t.Context(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	faulty := &faultyDatabase{Database: kept, path: path}
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

// next takes the fault of the next transaction off a list.
func (f *faultyDatabase) next(list *[]fault) fault {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(*list) == 0 {
		return func(run func(statements) error, what statements) error { return run(what) }
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
	var most int
	b.database.count(func(f *faultyDatabase) {
		f.committed[len(f.committed)-1] = count
		most = f.mostPKs
	})
	if most > 0 {
		count = min(count, most)
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

// sizes returns how many records each batch so far was to store, and how often the database was maintained.
func (f *faultyDatabase) sizes() (sizes []int, maintained int) {
	f.count(func(f *faultyDatabase) { sizes, maintained = append(sizes, f.committed...), f.maintained })
	return sizes, maintained
}

// holdUp begins with a create whose commit waits until release is called. The commits after it have the faults.
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

// inOneQueue begins with all creates, in their order, while a first one is held up, and lets go once all wait. The
// commits after it have the faults. It returns the errors of the creates, in the same order.
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
		t.Errorf("the create before: %v", err)
	}
	return errs
}

// failNextChange gives the next transaction that is none of a batch a fault.
func (f *faultyDatabase) failNextChange(next fault) {
	f.count(func(f *faultyDatabase) { f.changes = []fault{next} })
}

var errRolledBack = errors.New("rolled back")

// rollingBack runs statements and takes back what they did.
func rollingBack(run func(statements) error, what statements) error {
	return run(func(tx *gorm.DB) error { return errors.Join(what(tx), errRolledBack) })
}

// expectEvents counts the events of some kinds.
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
