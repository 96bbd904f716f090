package sqlite_test

import (
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store/storetest/processtest"
)

// Under a constant load of commits and checks, the WAL does not keep growing, unless another program reads an old
// snapshot. Once that program is done, the WAL is truncated.
func TestWALIsBoundedUnderLoad(t *testing.T) {
	t.Parallel()
	var log processtest.Buffer
	r := newLoggedRig(t, slog.New(slog.NewTextHandler(&log, nil)))
	const commits = 300
	load := func(slug string, longest time.Duration) (wal int64) {
		for i := range commits {
			start := time.Now()
			processtest.Must(t, r.Check(t.Context()), r.insert(fmt.Sprint(slug, i), 1<<20))
			if took := time.Since(start); took > longest {
				t.Errorf("commit %d and its maintenance took %s", i, took)
			}
		}
		return sizeOf(t, r.path+"-wal")
	}
	if wal, content := load("before", time.Minute), sizeOf(t, r.path); wal > 200<<20 || content < commits/2<<20 {
		t.Errorf("the WAL has %d bytes, the database %d", wal, content)
	}
	reader := plain(t, r.path)
	run(t, reader, "BEGIN; SELECT count(*) FROM entries")
	// A checkpoint that waits for the reader would take as long as the busy timeout.
	if wal := load("meanwhile", 5*time.Second); wal < commits<<20 {
		t.Errorf("the WAL has %d bytes, although it has a reader", wal)
	}
	run(t, reader, "ROLLBACK")
	r.fill(t, "a")
	if wal := sizeOf(t, r.path+"-wal"); wal > 128<<20 {
		t.Errorf("the WAL has %d bytes, although it has no reader", wal)
	}
	r.close(t)
	if !strings.Contains(log.String(), "WAL cannot be reset while another program reads an old snapshot") {
		t.Errorf("log: %s", log.String())
	}
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	processtest.Must(t, err)
	return info.Size()
}

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
	processtest.Must(t, r.commit(t.Context(), "before"))
	run(t, r.Inserter(), "PRAGMA query_only = on")
	if err := r.commit(t.Context(), "lost"); err == nil {
		t.Fatal("it did not fail")
	}
	run(t, r.Inserter(), "PRAGMA query_only = off")
	processtest.Must(t, r.Check(t.Context()))
	ready := sizeOf(t, r.path+"-wal")
	processtest.Must(t, r.insert("largest", largest))
	if grown := sizeOf(t, r.path+"-wal"); grown != ready || len(r.slugs(t)) != 2 {
		t.Errorf("the WAL has %d bytes, and then %d; stored: %v", ready, grown, r.slugs(t))
	}
	r.close(t)
}
