package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store/database"
	"example.com/providerd/store/durable/durabletest"
	"example.com/providerd/store/sqlite"
)

// Two processes that commit to one database concurrently, each with its own checkpoints, lose nothing.
func TestTwoProcessesCommitConcurrently(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	// This is enough for a checkpoint of each.
	const count = 600
	other := durabletest.Start(t, "commit", r.path, "other", fmt.Sprint(count))
	other.Proceed(t)
	want := map[string]bool{}
	for i := range count {
		if err := errors.Join(r.commit(t.Context(), fmt.Sprint("own", i)), r.Check(t.Context())); err != nil {
			t.Fatal(err)
		}
		want[fmt.Sprint("own", i)], want[fmt.Sprint("other", i)] = true, true
	}
	other.End(t)
	stored := r.slugs(t)
	for _, slug := range stored {
		delete(want, slug)
	}
	if len(stored) != 2*count || len(want) > 0 {
		t.Errorf("%d stored, missing: %v", len(stored), want)
	}
	var generation int
	var integrity string
	if err := errors.Join(r.Reader().Raw("PRAGMA user_version").Scan(&generation).Error,
		r.Reader().Raw("PRAGMA integrity_check").Scan(&integrity).Error); err != nil || integrity != "ok" || generation == 0 {
		t.Errorf("generation %d, integrity %s, %v", generation, integrity, err)
	}
	r.close(t)
}

// If files were removed under the process that has the database open, another process refuses to open it, because both
// would write independently. It retries for as long as opening or closing a database may take.
func TestFilesRemovedUnderAnotherProcess(t *testing.T) {
	t.Parallel()
	replace := func(path string) error { return errors.Join(copyFile(path), os.Rename(path+".older", path)) }
	for name, test := range map[string]struct {
		how     func(path string) error
		message string
	}{
		"wal-index removed":  {func(path string) error { return os.Remove(path + "-shm") }, "-shm was removed or replaced"},
		"wal-index replaced": {func(path string) error { return replace(path + "-shm") }, "-shm was removed or replaced"},
		"WAL removed":        {func(path string) error { return os.Remove(path + "-wal") }, "-wal was removed or replaced"},
		"truncated WAL":      {func(path string) error { return os.Truncate(path+"-wal", 0) }, "-wal does not match what SQLite wrote"},
		"overwritten": {
			func(path string) error { return os.WriteFile(path, make([]byte, 10_000), 0o600) }, "does not match what SQLite wrote",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.close(t)
			other := durabletest.Start(t, "commit", r.path, "x", "0")
			joined, err := openRig(t.Context(), r.path)
			if err != nil {
				t.Fatal(err)
			}
			if err := joined.commit(t.Context(), "joined"); err != nil {
				t.Error(err)
			}
			joined.close(t)
			if err := test.how(r.path); err != nil {
				t.Fatal(err)
			}
			for open, opened := range map[string]openFunc{
				"Open": sqlite.Open, "Create": sqlite.Create,
			} {
				start := time.Now()
				_, err := opened(t.Context(), r.path, slog.New(slog.DiscardHandler))
				if !errors.Is(err, database.ErrUnavailable) || !strings.Contains(err.Error(), test.message) {
					t.Errorf("%s: error is %v, want ErrUnavailable with %q", open, err, test.message)
				}
				if took := time.Since(start); took < time.Second || took > patience {
					t.Errorf("%s took %s", open, took)
				}
			}
			other.Kill(t)
		})
	}
}

// Open stops waiting for damaged files when its context ends.
func TestOpenStopsWithContext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.close(t)
	other := durabletest.Start(t, "commit", r.path, "x", "0")
	if err := os.Remove(r.path + "-shm"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := sqlite.Open(ctx, r.path, slog.New(slog.DiscardHandler)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
	other.Kill(t)
}
