package store_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/providerd/store"
)

// However long creates go on without a pause, the WAL does not grow with them.
func TestWALIsBoundedUnderLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	database := create(t, path)
	const callers, each, most = 64, 300, 200 << 20
	large := strings.Repeat("x", 3<<10)
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for i := range each {
				if err := database.Submit(t.Context(), fmt.Sprintf("%d of %d: %s", i, caller, large)).Wait(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	wal, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("after %d creates the WAL has %d bytes, the database %d", callers*each, wal.Size(), content.Size())
	if wal.Size() > most || content.Size() < 1<<20 {
		t.Errorf("the WAL has %d bytes, the database %d", wal.Size(), content.Size())
	}
}

// However long somebody looks at the events, the WAL is reset meanwhile.
func TestEventsDoNotKeepTheWAL(t *testing.T) {
	t.Parallel()
	database := create(t, filepath.Join(t.TempDir(), "test.db"))
	fill(t, database, "a")
	seen := 0
	for event, err := range database.Events(t.Context(), time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 2 {
			fill(t, database, "b")
		}
		if event.Event == store.EventProviderCreated && event.Name == "" {
			t.Errorf("event is %+v", event)
		}
	}
	if stored := len(names(t, database)); seen != stored+1 {
		t.Errorf("%d events are seen, want those of %d providers and a key", seen, stored)
	}
}

// A WAL that grew because another program read an old state of the database is cut off once it lets go.
func TestWALShrinksWhenItsReaderIsGone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	var log syncBuffer
	database, err := store.Create(t.Context(), "sqlite:"+path, "", store.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	old, err := reader.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.ExecContext(t.Context(), "SELECT count(*) FROM providers"); err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 1<<20)
	for i := range 300 {
		if err := database.Submit(t.Context(), fmt.Sprint(i, large)).Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if size := sizeOf(t, path+"-wal"); size < 300<<20 {
		t.Errorf("the WAL has %d bytes, although it is read", size)
	}
	if err := errors.Join(old.Rollback(), reader.Close()); err != nil {
		t.Fatal(err)
	}
	fill(t, database, "a")
	if size := sizeOf(t, path+"-wal"); size > 128<<20 {
		t.Errorf("the WAL has %d bytes, although nobody reads it", size)
	}
	if err := database.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "the WAL grows, because another program reads") {
		t.Errorf("log is %s", log.String())
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

// syncBuffer is a log that several goroutines write.
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
