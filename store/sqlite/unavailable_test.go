package sqlite_test

import (
	"database/sql"
	"errors"
	"slices"
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

// Batches and Check fail while a table is missing.
func TestMissingTableIsUnavailable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.Change(t.Context(), executing("ALTER TABLE providers RENAME TO other")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for what, err := range map[string]error{"Commit": r.commit(t.Context(), "lost"), "Check": r.Check(t.Context())} {
			if !errors.Is(err, database.ErrUnavailable) {
				t.Errorf("%s: error is %v, want ErrUnavailable", what, err)
			}
		}
	}
	if err := r.Change(t.Context(), executing("ALTER TABLE other RENAME TO providers")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Check(t.Context()), r.commit(t.Context(), "after")); err != nil {
		t.Error(err)
	}
	r.close(t)
}

// A batch waits for the transaction of another program.
func TestCommitWaitsForLock(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := plain(t, r.path)
	run(t, other, "BEGIN IMMEDIATE")
	outcomes := make(chan error)
	for way, commit := range r.ways() {
		go func() {
			outcomes <- commit(t.Context(), func(tx *gorm.DB) error { return insertApplication(tx, way) })
		}()
	}
	select {
	case err := <-outcomes:
		t.Errorf("a commit does not wait: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	run(t, other, "INSERT INTO applications (slug, name) VALUES ('other', '')")
	run(t, other, "COMMIT")
	for range 2 {
		if err := <-outcomes; err != nil {
			t.Error(err)
		}
	}
	stored := r.slugs(t)
	if slices.Sort(stored); !slices.Equal(stored, []string{"Change", "Commit", "other"}) {
		t.Errorf("stored: %v", stored)
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
