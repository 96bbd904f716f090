package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/storetest/processtest"
)

// limitFiles limits the size to which files of the process can grow, until it is called again.
func limitFiles(bytes uint64) error {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = min(bytes, limit.Max)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
}

// fillDisk opens the database at PATH and prevents its files from growing for a while.
func fillDisk(ctx context.Context, arguments []string) error {
	r, err := openRig(ctx, arguments[0])
	if err != nil {
		return err
	}
	if err := errors.Join(r.commit(ctx, "before"), processtest.AwaitProceed()); err != nil {
		return err
	}
	wal, err := os.Stat(r.path + "-wal")
	if err != nil {
		return err
	}
	if err := limitFiles(uint64(wal.Size())); err != nil {
		return err
	}
	change := func(tx *gorm.DB) error { return insertEntry(tx, "change") }
	for _, err := range []error{r.Write(ctx, change), r.insert("commit", 100_000)} {
		if want := database.ErrOutcomeUnknown; !errors.Is(err, want) {
			return fmt.Errorf("error is %w, want %w", err, want)
		}
	}
	for range 2 {
		readErr := r.Read(ctx, executing("SELECT slug FROM entries"))
		if err := r.Check(ctx); readErr != nil || !errors.Is(err, database.ErrUnavailable) {
			return fmt.Errorf("a read gets %w, and readiness %w", readErr, err)
		}
	}
	if err := limitFiles(^uint64(0)); err != nil {
		return err
	}
	return errors.Join(r.Check(ctx), r.commit(ctx, "after"), r.Close())
}

// While files cannot grow, though the disk has space, the outcome of a COMMIT is unknown until the next one succeeds.
// Until then, what reads neither makes the server ready nor promises that it can store.
func TestFilesThatCannotGrow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.close(t)
	processtest.StartSelf(t, "fill-disk", r.path).End(t)
	again, err := openRig(t.Context(), r.path)
	if err != nil {
		t.Fatal(err)
	}
	if stored := again.slugs(t); !slices.Equal(stored, []string{"before", "after"}) {
		t.Errorf("stored: %v", stored)
	}
	again.close(t)
}
