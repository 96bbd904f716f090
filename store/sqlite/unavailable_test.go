package sqlite_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// plain opens a database as another program would. It does not wait for locks.
func plain(t *testing.T, path string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=0")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func run(t *testing.T, conn *sql.Conn, statement string) {
	t.Helper()
	if _, err := conn.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// While another program writes for longer than the busy timeout, nothing is stored. Check fails once a batch has failed
// and until one can be stored.
func TestLockedDatabaseIsUnavailable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := plain(t, r.path)
	for _, commit := range r.ways() {
		if err := commit(t.Context(), executing("PRAGMA busy_timeout = 20")); err != nil {
			t.Fatal(err)
		}
	}
	for way, commit := range r.ways() {
		run(t, other, "BEGIN IMMEDIATE")
		if err := r.Check(t.Context()); err != nil {
			t.Errorf("Check fails before %s: %v", way, err)
		}
		start := time.Now()
		err := commit(t.Context(), func(*gorm.DB) error {
			t.Error("statements ran outside a transaction")
			return nil
		})
		if !errors.Is(err, database.ErrUnavailable) || errors.Is(err, database.ErrOutcomeUnknown) {
			t.Errorf("%s: error is %v after %s", way, err, time.Since(start))
		}
		if err := r.Check(t.Context()); errors.Is(err, database.ErrUnavailable) != (way == "Commit") {
			t.Errorf("Check after a failed %s: %v", way, err)
		}
		if err := commit(t.Context(), executing()); !errors.Is(err, database.ErrUnavailable) {
			t.Errorf("%s after a failed one: %v", way, err)
		}
		run(t, other, "ROLLBACK")
		if err := errors.Join(r.Check(t.Context()), r.commit(t.Context(), way)); err != nil {
			t.Errorf("released after a failed %s: %v", way, err)
		}
	}
	if stored := r.slugs(t); len(stored) != 2 {
		t.Errorf("stored: %v", stored)
	}
	r.close(t)
}

// While a table is missing, or once a newer program has migrated the database, nothing is stored, and what was stored
// before stays.
func TestChangedSchemaIsUnavailable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.commit(t.Context(), "before"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ do, undo, text string }{
		{"ALTER TABLE providers RENAME TO other", "ALTER TABLE other RENAME TO providers", "no such table"},
		{
			"INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, TRUE)",
			"DELETE FROM goose_db_version WHERE version_id = 999", "upgrade providerd",
		},
	} {
		execute(t, r.path, test.do)
		isNewer := test.text == "upgrade providerd"
		for range 2 {
			errs := map[string]error{"Commit": r.commit(t.Context(), "lost"), "Check": r.Check(t.Context())}
			if isNewer {
				errs["Change"] = r.Change(t.Context(), func(tx *gorm.DB) error { return insertApplication(tx, "lost") })
			}
			for what, err := range errs {
				if !errors.Is(err, database.ErrUnavailable) || errors.Is(err, database.ErrNewer) != isNewer ||
					!strings.Contains(err.Error(), test.text) {
					t.Errorf("%s: error is %v, want ErrUnavailable with %q", what, err, test.text)
				}
			}
		}
		execute(t, r.path, test.undo)
		if err := errors.Join(r.Check(t.Context()), r.commit(t.Context(), "after "+test.do)); err != nil {
			t.Error(err)
		}
	}
	if got := r.slugs(t); len(got) != 3 {
		t.Errorf("stored: %v", got)
	}
	r.close(t)
}

// After a failed batch, Check writes, which costs a sync, until it succeeds.
func TestCheckWritesOnlyAfterAFailedBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := plain(t, r.path)
	frames := func() (frames int) {
		t.Helper()
		var busy, copied int
		err := other.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &frames, &copied)
		if err != nil {
			t.Fatal(err)
		}
		return frames
	}
	checkWrites := func() bool {
		t.Helper()
		before := frames()
		if err := r.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		return frames() > before
	}
	for name, fault := range faults() {
		if checkWrites() {
			t.Errorf("Check writes before %s", name)
		}
		_ = r.inBatch(t.Context(), fault.run)
		if wrote, want := checkWrites(), errors.Is(fault.want, database.ErrUnavailable); wrote != want {
			t.Errorf("Check after %s: it writes: %t", name, wrote)
		}
	}
	r.close(t)
}

// A server that becomes ready after a failed batch has enough space for the largest create.
func TestCheckEnsuresSpaceForLargestCreate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const largest = 1 << 20
	if err := r.batches.Commit(t.Context(), 0, func(database.Batch) error { return database.ErrFull }); err == nil {
		t.Fatal("it did not fail")
	}
	if err := r.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	ready := sizeOf(t, r.path+"-wal")
	if err := r.insert("largest", largest); err != nil {
		t.Fatal(err)
	}
	if grown := sizeOf(t, r.path+"-wal"); grown != ready || len(r.slugs(t)) != 1 {
		t.Errorf("the WAL has %d bytes, and then %d; stored: %v", ready, grown, r.slugs(t))
	}
	r.close(t)
}
