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
	"example.com/providerd/store/durable/durabletest"
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

const unlimited = ^uint64(0)

// read commits a batch that stores nothing, such as a replay. It also returns the error of CanStore.
func (r *rig) read(ctx context.Context) (canStore, err error) {
	err = r.batches.Commit(ctx, 0, func(tx database.Batch) error {
		canStore = tx.CanStore()
		return tx.DB().Raw("SELECT slug FROM applications").Scan(new([]string)).Error
	})
	return canStore, err
}

// fillDisk opens the database at PATH and prevents its files from growing for a while.
func fillDisk(ctx context.Context, arguments []string) error {
	r, err := openRig(ctx, arguments[0])
	if err != nil {
		return err
	}
	if err := errors.Join(r.commit(ctx, "before"), durabletest.AwaitProceed()); err != nil {
		return err
	}
	wal, err := os.Stat(r.path + "-wal")
	if err != nil {
		return err
	}
	if err := limitFiles(uint64(wal.Size())); err != nil {
		return err
	}
	change := func(tx *gorm.DB) error { return insertApplication(tx, "change") }
	for _, err := range []error{r.Change(ctx, change), r.insert("commit", 100_000)} {
		if want := database.ErrOutcomeUnknown; !errors.Is(err, want) {
			return fmt.Errorf("error is %w, want %w", err, want)
		}
	}
	for range 2 {
		canStore, err := r.read(ctx)
		if err != nil {
			return fmt.Errorf("a batch that only reads failed: %w", err)
		}
		for who, err := range map[string]error{"a validation": canStore, "readiness": r.Check(ctx)} {
			if want := database.ErrUnavailable; !errors.Is(err, want) {
				return fmt.Errorf("%s reports %q, want %w", who, fmt.Sprint(err), want)
			}
		}
	}
	if err := limitFiles(unlimited); err != nil {
		return err
	}
	canStore, err := r.read(ctx)
	return errors.Join(canStore, err, r.Check(ctx), r.commit(ctx, "after"), r.batches.Close(), r.Close())
}

// readOnFullDisk opens the database at PATH, whose WAL is empty, and reads while no file can grow.
func readOnFullDisk(ctx context.Context, arguments []string) error {
	r, err := openRig(ctx, arguments[0])
	if err != nil {
		return err
	}
	if err := errors.Join(limitFiles(0), durabletest.AwaitProceed()); err != nil {
		return err
	}
	if _, err := r.read(ctx); err != nil {
		return err
	}
	return errors.Join(limitFiles(unlimited), r.commit(ctx, "after"), r.batches.Close(), r.Close())
}

// A batch that stores nothing needs no disk space, not even for an empty WAL.
func TestReadOnlyBatchNeedsNoSpace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.close(t)
	other := durabletest.Start(t, "read-on-full-disk", r.path)
	other.End(t)
}

// While the disk takes no more data, the outcome of a COMMIT is unknown until the next one succeeds. Meanwhile, batches
// that store nothing neither make the server ready nor promise that it can store.
func TestDiskFailsDuringCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.close(t)
	other := durabletest.Start(t, "fill-disk", r.path)
	other.End(t)
	again, err := openRig(t.Context(), r.path)
	if err != nil {
		t.Fatal(err)
	}
	if stored := again.slugs(t); !slices.Equal(stored, []string{"before", "after"}) {
		t.Errorf("stored: %v", stored)
	}
	again.close(t)
}

// commitAndSettle is commit that looks up an unknown outcome, as the store does.
func (r *rig) commitAndSettle(ctx context.Context, name string) error {
	err := r.commitRow(ctx, &inserted{Slug: name})
	if errors.Is(err, database.ErrOutcomeUnknown) {
		_, lookUpErr := r.read(ctx)
		err = errors.Join(err, lookUpErr)
	}
	r.batches.Maintain(ctx)
	return err
}

// limitWAL opens the database at PATH and commits many times while its files cannot exceed 4 MiB.
func limitWAL(ctx context.Context, arguments []string) error {
	r, err := openRig(ctx, arguments[0])
	if err != nil {
		return err
	}
	if err := errors.Join(limitFiles(4<<20), durabletest.AwaitProceed()); err != nil {
		return err
	}
	const commits, mostFailed = 2000, 20
	var failed int
	var isPromised bool
	for i := range commits {
		err := r.commitAndSettle(ctx, fmt.Sprint(i))
		if err == nil {
			isPromised = false
			continue
		}
		if failed++; isPromised {
			return fmt.Errorf("commit %d of a server that was ready after the one before: %w", i, err)
		}
		isPromised = r.Check(ctx) == nil
	}
	if failed == 0 || failed > mostFailed {
		return fmt.Errorf("%d of %d commits failed, want 1 to %d", failed, commits, mostFailed)
	}
	return errors.Join(r.batches.Close(), r.Close())
}

// If the WAL cannot grow, a checkpoint makes commits succeed again. Until then the server is not ready.
func TestWALThatCannotGrow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.close(t)
	other := durabletest.Start(t, "limit-wal", r.path)
	other.End(t)
	wantUsable(t, r.path)
}

// A server that becomes ready after a failed batch has enough space for the largest create.
func TestCheckEnsuresSpaceForLargestCreate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const largest = 1 << 20
	if err := r.batches.Commit(t.Context(), 0, func(database.Batch) error { return database.ErrFull }); err == nil {
		t.Fatal("it did not fail")
	}
	if err := r.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	ready := sizeOf(t, r.path+"-wal")
	if err := r.insert("largest", largest); err != nil {
		t.Fatal(err)
	}
	if grown := sizeOf(t, r.path+"-wal"); grown != ready || len(r.slugs(t)) != 1 {
		t.Errorf("the WAL has %d bytes, and then %d; stored: %v", ready, grown, r.slugs(t))
	}
	r.close(t)
}
