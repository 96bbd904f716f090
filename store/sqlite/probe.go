package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// minFreeBytes is what the largest create takes in the WAL and, after the next checkpoint, in the database.
const minFreeBytes = 4 << 20

// freeBytes returns the free space on the disk of a directory.
func freeBytes(dir string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, fmt.Errorf("%w: check the disk space of %s: %w", database.ErrUnavailable, dir, err)
	}
	return int64(disk.Bavail) * disk.Bsize, nil //nolint:gosec // No disk has 8 EiB.
}

// requireFree returns ErrFull if the disk of a directory lacks the space for a file of a size and the largest create.
func requireFree(dir string, size int64) error {
	free, err := freeBytes(dir)
	if want := size + minFreeBytes; err == nil && free < want {
		err = fmt.Errorf("%w: the disk of %s has %d MiB free, but %d MiB are needed",
			database.ErrFull, dir, free>>20, want>>20+1)
	}
	return err
}

// probeWrite checks that creates can be stored, after one has failed: a server that is not ready may receive no create
// that would show it. It changes no data. It returns ErrUnavailable.
func (d *Database) probeWrite(ctx context.Context) error {
	select {
	case d.probing <- struct{}{}:
		defer func() { <-d.probing }()
	case <-ctx.Done():
		return fmt.Errorf("%w: wait for another probe: %w", database.ErrUnavailable, ctx.Err())
	}
	if !d.failed.Load() {
		return nil
	}
	if err := requireFree(d.dir, 0); err != nil {
		return err
	}
	err := d.Write(ctx, probe)
	switch {
	case errors.Is(err, database.ErrOutcomeUnknown):
		// The outcome of the probe is unknown, not of a create. Hide ErrOutcomeUnknown from callers.
		return fmt.Errorf("%w: %s", database.ErrUnavailable, err.Error())
	case err != nil:
		return fmt.Errorf("%w: %w", database.ErrUnavailable, err)
	}
	d.failed.Store(false)
	return nil
}

// probe inserts a row larger than any create writes and rolls it back. It then commits one page with unchanged content.
func probe(tx *gorm.DB) error {
	if err := growWAL(tx); err != nil {
		return err
	}
	ctx, pool := tx.Statement.Context, tx.Statement.ConnPool
	generation, err := readGeneration(ctx, pool)
	if err != nil {
		return err
	}
	return setGeneration(ctx, pool, generation)
}

// growWAL inserts a row that exceeds the 2 MB page cache by more than the largest create writes, and rolls it back.
// SQLite spills the pages that do not fit to the WAL right away. They stay there, after the last commit frame, and the
// next transactions overwrite them. Rewriting a page would prove less: under a quota or a file size limit the WAL may
// have space for that page and still be unable to grow.
func growWAL(tx *gorm.DB) error {
	for _, statement := range []string{
		"SAVEPOINT probe",
		fmt.Sprintf("INSERT INTO applications (slug, name) VALUES (hex(randomblob(16)), hex(zeroblob(%d)))", minFreeBytes/2),
		"ROLLBACK TO probe",
	} {
		if err := tx.Exec(statement).Error; err != nil {
			return fmt.Errorf("append to the WAL: %w", err)
		}
	}
	return nil
}

// contentionTime is how long inserts are observed before they count as contended.
const contentionTime = 10 * time.Second

// lockWaits adds up how long inserts wait for the lock of the database.
type lockWaits struct {
	total atomic.Int64
	// since is when the current period of contentionTime began, and before was the total then.
	since  time.Time
	before int64
	// contendedAt is when the last period ended in which inserts waited for more than half of the time, in Unix
	// nanoseconds.
	contendedAt atomic.Int64
}

// add counts a wait, and reports whether the lock has become contended. One goroutine at a time calls it.
func (w *lockWaits) add(wait time.Duration) (becameContended bool) {
	total, now := w.total.Add(int64(wait)), time.Now()
	period := now.Sub(w.since)
	if period < contentionTime {
		return false
	}
	waited := time.Duration(total - w.before)
	w.since, w.before = now, total
	if waited <= period/2 {
		return false
	}
	wasContended := w.isContended()
	w.contendedAt.Store(now.UnixNano())
	return !wasContended
}

// isContended reports whether inserts waited for most of the last period, which a wait may have made longer.
func (w *lockWaits) isContended() bool {
	return time.Since(time.Unix(0, w.contendedAt.Load())) < 2*contentionTime
}
