package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rogpeppe/go-internal/testscript"
	"gorm.io/gorm"
	"pgregory.net/rapid"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest/processtest"
)

// TestMain also runs the test binary as other programs, because SQLite's locks work between processes. "commit PATH"
// holds a database open until its standard input ends, and then commits.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"commit": processtest.Program(func(ctx context.Context, arguments []string) error {
			r, err := openRig(ctx, arguments[0])
			if err != nil {
				return err
			}
			return errors.Join(processtest.AwaitProceed(), r.commit(ctx, "of a program"), r.Close())
		}),
		"stop": processtest.Program(func(ctx context.Context, arguments []string) error {
			r, err := openRig(ctx, arguments[0])
			if err != nil {
				return err
			}
			return errors.Join(processtest.AwaitProceed(), r.Write(ctx, func(tx *gorm.DB) error {
				// Another thread may receive the signal later.
				received := make(chan os.Signal, 1)
				signal.Notify(received, syscall.SIGTSTP)
				err := syscall.Kill(os.Getpid(), syscall.SIGTSTP)
				<-received
				return errors.Join(err, insertEntry(tx, "stopped"))
			}), r.Close())
		}),
	})
}

// rig is an open database. The test does not close it automatically, because a damaged database cannot be closed.
type rig struct {
	*sqlite.Database
	path string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return processtest.Try(createRig(t.Context(), filepath.Join(t.TempDir(), "test.db"), slog.New(slog.DiscardHandler))).Must(t)
}

// createRig creates a database with a table for Insert, whose creates are in the log, and a keyset.
func createRig(ctx context.Context, path string, logger *slog.Logger) (*rig, error) {
	opened, err := sqlite.Create(ctx, path, logger)
	if err != nil {
		return nil, err
	}
	return &rig{Database: opened, path: path}, opened.Write(ctx, executing(
		"CREATE TABLE entries (pk INTEGER PRIMARY KEY, uid TEXT UNIQUE, slug TEXT NOT NULL UNIQUE, name TEXT NOT NULL)",
		"CREATE TRIGGER entries_created AFTER INSERT ON entries BEGIN INSERT INTO events (at, event, subject, kind, name, fields, "+
			"caller, request_id, remote_address, os_user) VALUES (0, 'provider created', NEW.pk, 'oauth2', '', '', '', '', '', ''); END",
		"INSERT INTO keyset VALUES (1, x'01', x'0b', x'0c', x'0d')"))
}

// openRig opens an existing database.
func openRig(ctx context.Context, path string) (*rig, error) {
	opened, err := sqlite.Open(ctx, path, slog.New(slog.DiscardHandler))
	return &rig{Database: opened, path: path}, err
}

type openFunc func(ctx context.Context, path string, logger *slog.Logger) (*sqlite.Database, error)

func (r *rig) commit(ctx context.Context, slug string) error { return r.insertRow(ctx, slug, "") }

// insert inserts an entry with a name of so many bytes.
func (r *rig) insert(slug string, size int) error {
	return r.insertRow(context.Background(), slug, strings.Repeat("0", size))
}

// insertRow inserts an entry as creates are inserted.
func (r *rig) insertRow(ctx context.Context, slug, name any) error {
	pks, err := r.Insert(ctx, database.Insertion{
		Table: "entries", Columns: []string{"uid", "slug", "name"}, Rows: [][]any{{uuid.New(), slug, name}}, KeysetVersion: []byte{1},
	})
	if err == nil && len(pks) != 1 {
		return errors.New("the row was not inserted")
	}
	return err
}

func insertEntry(tx *gorm.DB, slug string) error {
	return tx.Exec("INSERT INTO entries (slug, name) VALUES (?, '')", slug).Error
}

func (r *rig) slugs(t *testing.T) []string {
	t.Helper()
	var slugs []string
	processtest.Must(t, r.Reader().WithContext(t.Context()).Raw("SELECT slug FROM entries ORDER BY pk").Scan(&slugs).Error)
	return slugs
}

func (r *rig) close(t *testing.T) {
	t.Helper()
	processtest.Must(t, r.Close())
}

// fill commits until the WAL was reset twice: the database file has another generation, and no checkpoint is running.
func (r *rig) fill(t *testing.T, name string) {
	t.Helper()
	const limit = 20_000
	resets := 0
	for i := 0; resets < 2; i++ {
		before := r.Stats().WAL.Pages
		if err := r.commit(t.Context(), fmt.Sprint(name, i)); err != nil || i == limit {
			t.Fatalf("the WAL is reset %d times after %d commits: %v", resets, i, err)
		}
		if r.Stats().WAL.Pages < before {
			resets++
		}
	}
}

// executing returns a function that runs statements.
func executing(statements ...string) func(tx *gorm.DB) error {
	return func(tx *gorm.DB) error {
		for _, statement := range statements {
			// A PRAGMA may return rows, and keeps the transaction open until they are read.
			var answer []string
			if err := tx.Raw(statement).Scan(&answer).Error; err != nil {
				return err
			}
		}
		return nil
	}
}

// TestStopWaitsForTransaction stops a program within a transaction, as Ctrl-Z does. It is stopped once others can write.
func TestStopWaitsForTransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := processtest.StartSelf(t, "stop", r.path)
	var group sync.WaitGroup
	group.Go(func() { other.End(t) })
	processtest.WaitUntil(t, "the program is stopped", func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", other.Command.Process.Pid))
		return err == nil && strings.Contains(string(state), ") T ")
	})
	processtest.Must(t, r.commit(t.Context(), "beside it"))
	processtest.Must(t, other.Command.Process.Signal(syscall.SIGCONT))
	group.Wait()
	processtest.Equal(t, r.slugs(t), []string{"stopped", "beside it"}, "stored entries")
	r.close(t)
}

// Under a constant load of commits and checks, the WAL does not keep growing, unless another program reads an old
// snapshot. Once that program is done, the WAL is truncated.
func TestWALIsBoundedUnderLoad(t *testing.T) {
	t.Parallel()
	var log processtest.Buffer
	r := processtest.Try(createRig(t.Context(), filepath.Join(t.TempDir(), "test.db"), slog.New(slog.NewTextHandler(&log, nil)))).Must(t)
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
	db, err := sql.Open("sqlite3", r.path)
	reader, connErr := processtest.Closing(t, db, err).Conn(t.Context())
	processtest.Closing(t, reader, connErr)
	processtest.Must(t, run(t.Context(), reader, "BEGIN; SELECT count(*) FROM entries"))
	// A checkpoint that waits for the reader would take as long as the busy timeout.
	if wal := load("meanwhile", 5*time.Second); wal < commits<<20 {
		t.Errorf("the WAL has %d bytes, although it has a reader", wal)
	}
	processtest.Must(t, run(t.Context(), reader, "ROLLBACK"))
	r.fill(t, "a")
	if wal := sizeOf(t, r.path+"-wal"); wal > 128<<20 {
		t.Errorf("the WAL has %d bytes, although it has no reader", wal)
	}
	r.close(t)
	processtest.Contains(t, log.String(), "WAL cannot be reset while another program reads an old snapshot")
}

func sizeOf(t rapid.TB, path string) int64 {
	t.Helper()
	info := processtest.Try(os.Stat(path)).Must(t)
	return info.Size()
}

// run runs a statement on a connection.
func run(ctx context.Context, conn *sql.Conn, statement string, arguments ...any) error {
	_, err := conn.ExecContext(ctx, statement, arguments...)
	return err
}

// A server that becomes ready after a failed insert has enough space for the largest create.
func TestCheckEnsuresSpaceForLargestCreate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const largest = 1 << 20
	processtest.Must(t, r.commit(t.Context(), "before"))
	processtest.Must(t, run(t.Context(), r.Inserter(), "PRAGMA query_only = on"))
	if err := r.commit(t.Context(), "lost"); err == nil {
		t.Fatal("it did not fail")
	}
	processtest.Must(t, run(t.Context(), r.Inserter(), "PRAGMA query_only = off"), r.Check(t.Context()))
	ready := sizeOf(t, r.path+"-wal")
	processtest.Must(t, r.insert("largest", largest))
	if grown := sizeOf(t, r.path+"-wal"); grown != ready || len(r.slugs(t)) != 2 {
		t.Errorf("the WAL has %d bytes, and then %d; stored: %v", ready, grown, r.slugs(t))
	}
	r.close(t)
}

// Statements that no connection has prepared yet wait for a connection only, in transactions and outside of them.
func TestReadsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ended := make(chan error)
	const callers, rounds = 16, 200
	for round := range rounds {
		text := fmt.Sprintf("SELECT count(*) + %d FROM entries", round)
		for caller := range callers {
			go func() {
				if caller%2 == 0 {
					ended <- r.Reader().WithContext(t.Context()).Exec(text).Error
				} else {
					ended <- r.Read(t.Context(), executing(text))
				}
			}()
		}
		for range callers {
			select {
			case err := <-ended:
				processtest.Must(t, err)
			case <-time.After(processtest.Timeout):
				t.Fatalf("round %d: a read has not ended", round)
			}
		}
	}
	r.close(t)
}
