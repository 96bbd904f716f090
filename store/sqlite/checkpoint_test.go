package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// The WAL does not keep growing under a constant load of commits.
func TestWALIsBoundedUnderLoad(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const commits, most = 300, 200 << 20
	for i := range commits {
		if err := r.insert(i, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	wal, content := sizeOf(t, r.path+"-wal"), sizeOf(t, r.path)
	t.Logf("after %d commits the WAL has %d bytes, the database %d", commits, wal, content)
	if wal > most || content < commits/2<<20 {
		t.Errorf("the WAL has %d bytes, the database %d", wal, content)
	}
	r.close(t)
}

// Checks leave no read transaction open.
func TestCheckKeepsNoSnapshot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 20 {
		name := fmt.Sprint("before ", i)
		if err := errors.Join(r.Check(t.Context()), r.commit(t.Context(), name)); err != nil {
			t.Fatal(err)
		}
		if slugs := r.slugs(t); slugs[len(slugs)-1] != name {
			t.Errorf("readers see %v, not %s", slugs, name)
		}
	}
	r.fill(t, "after")
	r.close(t)
}

// A WAL that grew because another program read an old snapshot is truncated once that program is done.
func TestWALShrinksAfterReaderCloses(t *testing.T) {
	t.Parallel()
	var log syncBuffer
	r := newLoggedRig(t, slog.New(slog.NewTextHandler(&log, nil)))
	reader := plain(t, r.path)
	run(t, reader, "BEGIN; SELECT count(*) FROM applications")
	// A checkpoint that waits for the reader would take as long as the busy timeout.
	const longest = 5 * time.Second
	for i := range 300 {
		start := time.Now()
		if err := r.insert(i, 1<<20); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > longest {
			t.Errorf("commit %d and its maintenance took %s", i, took)
		}
	}
	if size := sizeOf(t, r.path+"-wal"); size < 300<<20 {
		t.Errorf("the WAL has %d bytes, although it has a reader", size)
	}
	run(t, reader, "ROLLBACK")
	r.fill(t, "a")
	if size := sizeOf(t, r.path+"-wal"); size > 128<<20 {
		t.Errorf("the WAL has %d bytes, although it has no reader", size)
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

// syncBuffer is a log that several goroutines write to.
type syncBuffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (b *syncBuffer) Write(text []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(text)
}

func (b *syncBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}
