package sqlite_test

import (
	"errors"
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
			if err := errors.Join(r.Check(t.Context()), r.insert(fmt.Sprint(slug, i), 1<<20)); err != nil {
				t.Fatal(err)
			}
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
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
