package sqlite_test

import (
	"context"
	"errors"
	"os/signal"
	"syscall"
	"testing"

	"gorm.io/gorm"
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

// read commits a batch that has nothing to store, such as a replay.
func (r *rig) read(ctx context.Context) error {
	return r.batches.Commit(ctx, 0, func(tx *gorm.DB) error {
		return tx.Raw("SELECT slug FROM applications").Scan(new([]string)).Error
	})
}

// readOnFullDisk opens the database at PATH, whose WAL is empty, and reads while no file can have anything more.
func readOnFullDisk(ctx context.Context, arguments []string) error {
	r, err := openRig(ctx, arguments[0])
	if err != nil {
		return err
	}
	if err := errors.Join(limitFiles(0), awaitStart()); err != nil {
		return err
	}
	if err := r.read(ctx); err != nil {
		return err
	}
	return errors.Join(limitFiles(unlimited), r.commit(ctx, "after"), r.batches.Close(), r.Close())
}

// A batch that has nothing to store needs no room, not even in an empty WAL.
func TestBatchThatOnlyReadsNeedsNoRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.close(t)
	other := start(t, "read-on-full-disk", r.path)
	other.proceed(t)
	other.end(t)
}
