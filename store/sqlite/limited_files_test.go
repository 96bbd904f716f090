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

// limitFiles lets no file of the process grow beyond so many bytes until it is called again.
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

// read commits a batch that has nothing to store, such as a replay. It returns what the batch is told of creates.
func (r *rig) read(ctx context.Context) (refusal, err error) {
	err = r.batches.Commit(ctx, 0, func(tx database.Batch) error {
		refusal = tx.CanStore()
		return tx.DB().Raw("SELECT slug FROM applications").Scan(new([]string)).Error
	})
	return refusal, err
}

// fillDisk opens the database at PATH and lets none of its files grow for a while.
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
		refusal, err := r.read(ctx)
		if err != nil {
			return fmt.Errorf("what only reads is refused: %w", err)
		}
		for who, err := range map[string]error{"a validation": refusal, "readiness": r.Check(ctx)} {
			if want := database.ErrUnavailable; !errors.Is(err, want) {
				return fmt.Errorf("%s says %q, want %w", who, fmt.Sprint(err), want)
			}
		}
	}
	if err := limitFiles(unlimited); err != nil {
		return err
	}
	refusal, err := r.read(ctx)
	return errors.Join(refusal, err, r.Check(ctx), r.commit(ctx, "after"), r.batches.Close(), r.Close())
}

// readOnFullDisk opens the database at PATH, whose WAL is empty, and reads while no file can have anything more.
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

// A batch that has nothing to store needs no room, not even in an empty WAL.
func TestBatchThatOnlyReadsNeedsNoRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.close(t)
	other := durabletest.Start(t, "read-on-full-disk", r.path)
	other.End(t)
}

// While the disk takes no more, nobody can tell what a COMMIT has stored. The next one can. Until then, what stores
// nothing neither makes the server ready nor promises anything.
func TestDiskThatFailsInCommit(t *testing.T) {
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
		t.Errorf("stored are %v", stored)
	}
	again.close(t)
}

// commitAndSettle is commit that looks up the outcome where that is unknown, as the store does.
func (r *rig) commitAndSettle(ctx context.Context, name string) error {
	err := r.commitRow(ctx, &inserted{Slug: name})
	if errors.Is(err, database.ErrOutcomeUnknown) {
		_, lookUpErr := r.read(ctx)
		err = errors.Join(err, lookUpErr)
	}
	r.batches.Maintain(ctx)
	return err
}

// limitWAL opens the database at PATH, and commits many times while none of its files may exceed 4 MiB.
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

// A WAL that cannot grow gets a checkpoint, after which commits succeed again. Until then the server is not ready.
func TestWALThatCannotGrow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.close(t)
	other := durabletest.Start(t, "limit-wal", r.path)
	other.End(t)
	wantUsable(t, r.path)
}

// A server that is ready after a batch that failed has room for the largest create.
func TestCheckMakesRoomForTheLargestCreate(t *testing.T) {
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
		t.Errorf("the WAL has %d bytes, and then %d; stored are %v", ready, grown, r.slugs(t))
	}
	r.close(t)
}
