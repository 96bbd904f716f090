package storetest

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest/processtest"
)

// Fault is called instead of a Read, Write or Insert. It may run it, with an error for the end of the transaction of a
// Read or Write.
type Fault func(run func(end error) error) error

// Faulty is a SQLite database with faults injected into its next statements. It records the inserts.
type Faulty struct {
	database.Database
	// Path is that of the database, and Keyset that of its keyset file.
	Path, Keyset string

	mutex sync.Mutex
	// Inserts, Reads and Writes are the faults of the next ones, in order.
	Inserts, Reads, Writes []Fault
	// Sizes holds the number of rows of each insert.
	Sizes []int
}

// NewFaulty opens a store over a faulty database. Both are closed when the test ends.
func NewFaulty(t *testing.T) (*store.Store, *Faulty) {
	t.Helper()
	dir := t.TempDir()
	path, keyset := filepath.Join(dir, "test.db"), filepath.Join(dir, "keyset.json")
	db := processtest.Try(sqlite.Create(t.Context(), path, slog.New(slog.DiscardHandler))).Must(t)
	faulty := &Faulty{Database: db, Path: path, Keyset: keyset}
	opened, err := store.Create(t.Context(), faulty, keyset)
	return processtest.Closing(t, opened, err), faulty
}

// next removes and returns the fault of the next call from a list.
func (f *Faulty) next(list *[]Fault) Fault {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(*list) == 0 {
		return Passing
	}
	first := (*list)[0]
	*list = (*list)[1:]
	return first
}

// Read is that of the database, with the next fault of Reads.
func (f *Faulty) Read(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return f.next(&f.Reads)(func(end error) error {
		return f.Database.Read(ctx, func(tx *gorm.DB) error { return errors.Join(statements(tx), end) })
	})
}

// Write is that of the database, with the next fault of Writes.
func (f *Faulty) Write(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return f.next(&f.Writes)(func(end error) error {
		return f.Database.Write(ctx, func(tx *gorm.DB) error { return errors.Join(statements(tx), end) })
	})
}

// Insert is that of the database, with the next fault of Inserts.
func (f *Faulty) Insert(ctx context.Context, rows database.Insertion) (map[uuid.UUID]int64, error) {
	f.Inject(func(f *Faulty) { f.Sizes = append(f.Sizes, len(rows.Rows)) })
	var pks map[uuid.UUID]int64
	err := f.next(&f.Inserts)(func(error) (err error) {
		pks, err = f.Database.Insert(ctx, rows)
		return err
	})
	if err != nil {
		return nil, err
	}
	return pks, nil
}

// Inject changes the faults and what is recorded, which statements that run at the same time use.
func (f *Faulty) Inject(change func(f *Faulty)) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	change(f)
}

// Passing runs what it is called for without a fault.
func Passing(run func(error) error) error { return run(nil) }
