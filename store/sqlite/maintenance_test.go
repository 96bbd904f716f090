package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"pgregory.net/rapid"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

func noProgress(int64, int64) {}

// noCheck accepts every backup.
func noCheck(database.Readable) error { return nil }

// A backup is rejected, and leaves nothing, if it lacks a row, though integrity_check finds nothing, or if the files of
// the database were replaced while it ran, so that it is unknown what was copied.
func TestWrongBackupIsRejected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	processtest.Must(t, r.insert("first", 10), r.insert("second", 10))
	for want, harm := range map[string]func(draft string){
		"entries:1 ": func(draft string) { storetest.Execute(t, draft, "DELETE FROM entries WHERE slug = 'first'") },
		"removed or replaced while in use": func(string) {
			if err := os.Rename(r.path+"-shm", r.path+"-shm.away"); err != nil {
				t.Error(err)
			}
		},
	} {
		dir := t.TempDir()
		err := r.Backup(t.Context(), filepath.Join(dir, "backup.db"), func(done, total int64) {
			drafts, err := filepath.Glob(filepath.Join(dir, ".backup.db[0-9]*"))
			if err != nil || len(drafts) != 1 || done != total {
				t.Fatalf("%d of %d bytes are copied to %v, %v", done, total, drafts, err)
			}
			harm(drafts[0])
		}, noCheck)
		if !errors.Is(err, database.ErrUnavailable) || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("found %v, %v", left, err)
		}
		if err := os.Rename(r.path+"-shm.away", r.path+"-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	r.close(t)
}

// A database that a program opens while the backup is copied and checked is not replaced, whether it existed before or
// was created in the meantime.
func TestRestoreRechecksBeforeReplacing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	processtest.Must(t, r.commit(t.Context(), "kept"), r.Backup(t.Context(), backup, noProgress, noCheck))
	if err := r.commit(t.Context(), "later"); err != nil {
		t.Fatal(err)
	}
	r.close(t)
	restoration := sqlite.Restoration{
		Backup: backup, Database: r.path, Replace: true, Progress: noProgress, Restored: func(*gorm.DB) error { return nil },
	}
	var other processtest.Other
	restoration.Check = func(database.Readable) error {
		other = processtest.StartSelf(t, "commit", r.path)
		return nil
	}
	if kept, err := restoration.Run(t.Context()); !errors.Is(err, database.ErrInUse) || kept != "" {
		t.Errorf("error is %v, %q is kept", err, kept)
	}
	other.End(t)
	made := filepath.Join(t.TempDir(), "made.db")
	restoration.Database, restoration.Replace = made, false
	restoration.Check = func(database.Readable) error { return os.WriteFile(made, []byte("made"), 0o600) }
	if kept, err := restoration.Run(t.Context()); !errors.Is(err, fs.ErrExist) || kept != "" {
		t.Errorf("error is %v, %q is kept", err, kept)
	}
	if content, err := os.ReadFile(made); err != nil || string(content) != "made" {
		t.Errorf("content is %.20q, %v", content, err)
	}
	opened, err := openRig(t.Context(), r.path)
	processtest.Must(t, err)
	if got, want := opened.slugs(t), []string{"kept", "later", "of a program"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	opened.close(t)
}

// Under a constant load of commits and checks, the WAL does not keep growing, unless another program reads an old
// snapshot. Once that program is done, the WAL is truncated.
func TestWALIsBoundedUnderLoad(t *testing.T) {
	t.Parallel()
	var log processtest.Buffer
	r, err := createRig(t.Context(), filepath.Join(t.TempDir(), "test.db"), slog.New(slog.NewTextHandler(&log, nil)))
	processtest.Must(t, err)
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
	if !strings.Contains(log.String(), "WAL cannot be reset while another program reads an old snapshot") {
		t.Errorf("log: %s", log.String())
	}
}

func sizeOf(t rapid.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	processtest.Must(t, err)
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
