package sqlite_test

import (
	"database/sql"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// plain opens a database as another program would. It does not wait for locks.
func plain(t *testing.T, path string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=0")
	conn, err := processtest.Closing(t, db, err).Conn(t.Context())
	return processtest.Closing(t, conn, err)
}

func run(t *testing.T, conn *sql.Conn, statement string) {
	t.Helper()
	if _, err := conn.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
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
