package sqlite_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

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

// While another program writes for longer than the busy timeout, nothing is stored. Check fails once an insert has failed
// and until one can be stored.
func TestLockedDatabaseIsUnavailable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := plain(t, r.path)
	const impatient = "PRAGMA busy_timeout = 20"
	if err := errors.Join(r.commit(t.Context(), "before"), r.Write(t.Context(), executing(impatient))); err != nil {
		t.Fatal(err)
	}
	run(t, r.Inserter(), impatient)
	for way, commit := range map[string]func() error{
		"Insert": func() error { return r.commit(t.Context(), "lost") },
		"Write": func() error {
			return r.Write(t.Context(), func(*gorm.DB) error {
				t.Error("statements ran outside a transaction")
				return nil
			})
		},
	} {
		run(t, other, "BEGIN IMMEDIATE")
		if err := r.Check(t.Context()); err != nil {
			t.Errorf("Check fails before %s: %v", way, err)
		}
		for range 2 {
			if err := commit(); !errors.Is(err, database.ErrUnavailable) || errors.Is(err, database.ErrOutcomeUnknown) {
				t.Errorf("%s: error is %v", way, err)
			}
			if err := r.Check(t.Context()); errors.Is(err, database.ErrUnavailable) != (way == "Insert") {
				t.Errorf("Check after a failed %s: %v", way, err)
			}
		}
		run(t, other, "ROLLBACK")
		if err := errors.Join(r.Check(t.Context()), r.commit(t.Context(), way)); err != nil {
			t.Errorf("released after a failed %s: %v", way, err)
		}
	}
	if stored := r.slugs(t); len(stored) != 3 {
		t.Errorf("stored: %v", stored)
	}
	r.close(t)
}

// Once a newer program has migrated the database, nothing is stored, and what was stored before stays. An insert finds
// another version of the keyset then, and Read does not return a newer one.
func TestNewerSchemaIsUnavailable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.commit(t.Context(), "before"); err != nil {
		t.Fatal(err)
	}
	execute(t, r.path, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, TRUE)")
	nothing := func(*gorm.DB) error { return nil }
	for what, err := range map[string]error{
		"Check": r.Check(t.Context()), "Read": r.Read(t.Context(), nothing), "Write": r.Write(t.Context(), nothing),
	} {
		if !errors.Is(err, database.ErrUnavailable) || !errors.Is(err, database.ErrNewer) || !strings.Contains(err.Error(), "upgrade providerd") {
			t.Errorf("%s: error is %v, want ErrUnavailable", what, err)
		}
	}
	execute(t, r.path, "DELETE FROM goose_db_version WHERE version_id = 999")
	if err := errors.Join(r.Check(t.Context()), r.commit(t.Context(), "after")); err != nil {
		t.Error(err)
	}
	if got := r.slugs(t); len(got) != 2 {
		t.Errorf("stored: %v", got)
	}
	r.close(t)
}

// A server that becomes ready after a failed insert has enough space for the largest create.
func TestCheckEnsuresSpaceForLargestCreate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const largest = 1 << 20
	if err := r.commit(t.Context(), "before"); err != nil {
		t.Fatal(err)
	}
	run(t, r.Inserter(), "PRAGMA query_only = on")
	if err := r.commit(t.Context(), "lost"); err == nil {
		t.Fatal("it did not fail")
	}
	run(t, r.Inserter(), "PRAGMA query_only = off")
	if err := r.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	ready := sizeOf(t, r.path+"-wal")
	if err := r.insert("largest", largest); err != nil {
		t.Fatal(err)
	}
	if grown := sizeOf(t, r.path+"-wal"); grown != ready || len(r.slugs(t)) != 2 {
		t.Errorf("the WAL has %d bytes, and then %d; stored: %v", ready, grown, r.slugs(t))
	}
	r.close(t)
}
