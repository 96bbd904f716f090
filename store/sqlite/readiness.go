package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"
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

// firstMigration contains the statement of the trigger.
const firstMigration = "migrations/00001_schema.sql"

// selectFaults selects what is missing of what keeps creates single and in the log, and triggers that other programs
// have added to providerd's tables: they could ignore rows.
const selectFaults = `SELECT 'index "' || column3 || '" is missing'
	FROM (VALUES ('uid', 0, 'uid'), ('client_id', 0, 'client_id'),
		('created_by, kind, idempotency_key', 1, 'providers_idempotency_key'))
	WHERE NOT EXISTS (SELECT 1 FROM pragma_index_list('providers') AS list JOIN sqlite_master USING (name)
		WHERE list."unique" AND list.partial = column2
		AND (list.partial = 0 OR sql LIKE '%WHERE idempotency_key IS NOT NULL')
		AND (SELECT group_concat(name, ', ') FROM pragma_index_info(list.name)) = column1)
	UNION ALL SELECT 'trigger "providers_created" is missing'
	WHERE NOT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND name = 'providers_created')
	UNION ALL SELECT 'trigger "' || name || CASE name WHEN 'providers_created' THEN '" was changed' ELSE '" was added' END
	FROM sqlite_master WHERE type = 'trigger' AND instr(?, sql) = 0
	AND lower(tbl_name) IN ('providers', 'applications', 'backchannels', 'tokens', 'keyset', 'events') LIMIT 5`

// readFaults returns what selectFaults selects.
func readFaults(tx *gorm.DB) (faults []string, err error) {
	migration, err := embedded.ReadFile(firstMigration)
	if err == nil {
		err = tx.Raw(selectFaults, string(migration)).Scan(&faults).Error
	}
	return faults, database.Wrap("read the schema", err)
}

// selectLastPK selects the largest pk that a provider has had, which another program may have deleted without an event.
// Creates are not in the index of events, but one of the last events is usually a create.
const selectLastPK = `SELECT max(pk) FROM (SELECT max(pk) AS pk FROM providers UNION ALL
	SELECT max(subject) FROM events WHERE event = 'provider deleted' AND event <> 'provider created' UNION ALL
	SELECT * FROM (SELECT subject FROM events WHERE event = 'provider created' ORDER BY id DESC LIMIT 1))`

// NewPKs returns the pks after the last one.
func (*Database) NewPKs(tx *gorm.DB, count int) (pks []int64, err error) {
	err = tx.Raw("WITH RECURSIVE pks (pk) AS (SELECT coalesce(("+selectLastPK+"), 0) + 1 UNION ALL "+
		"SELECT pk + 1 FROM pks LIMIT ?) SELECT pk FROM pks", count).Scan(&pks).Error
	return pks, err
}

const selectLastEvent = `SELECT max(id) FROM events`

// maxKey is the largest key of a row.
const maxKey = math.MaxInt64 - 1

// selectEnded selects the tables that have the largest key.
const selectEnded = `SELECT coalesce(group_concat(name, ', '), '') FROM (SELECT name, seq AS last FROM sqlite_sequence
	UNION ALL SELECT 'providers', (` + selectLastPK + `) UNION ALL SELECT 'events', (` + selectLastEvent + `))
	WHERE last >= ?`

// check returns database.ErrUnavailable if the schema has faults, or a table has no higher key.
func check(tx *gorm.DB) error {
	faults, err := readFaults(tx)
	if err == nil {
		err = database.SchemaError(faults)
	}
	if err != nil {
		return err
	}
	var ended string
	if err := tx.Raw(selectEnded, maxKey).Scan(&ended).Error; err != nil {
		return fmt.Errorf("read the last keys: %w", err)
	}
	if ended != "" {
		return endedError(ended)
	}
	return nil
}

func endedError(tables string) error {
	return fmt.Errorf("%w: the last key is the largest possible, %d, so no row can be added to these tables: %s; restore "+
		"a backup, or lower that key", database.ErrUnavailable, maxKey, tables)
}

// Check returns the errors of Prepare.
func (v *View) Check(ctx context.Context) (isBehind bool, err error) {
	return false, check(v.Reader().WithContext(ctx))
}

// Prepare checks that all tables have a higher key: each new key is above those in use.
func (d *Database) Prepare(ctx context.Context) error { return check(d.Reader().WithContext(ctx)) }

// contentionTime is how long inserts are observed before they count as contended.
const contentionTime = 10 * time.Second

// lockWaits adds up how long inserts wait for the lock of the database. since is when the current period began, before
// the total then, and contendedAt when the last period ended of which more than half was waiting, in Unix nanoseconds.
type lockWaits struct {
	total, contendedAt atomic.Int64
	since              time.Time
	before             int64
}

// add counts a wait, and reports whether the lock has become contended. One goroutine at a time calls it.
func (w *lockWaits) add(wait time.Duration) (becameContended bool) {
	total, now := w.total.Add(int64(wait)), time.Now()
	period, waited := now.Sub(w.since), time.Duration(total-w.before)
	if period < contentionTime {
		return false
	}
	if w.since, w.before = now, total; waited > period/2 {
		becameContended = !w.isContended()
		w.contendedAt.Store(now.UnixNano())
	}
	return becameContended
}

// isContended reports whether inserts waited for most of the last period, which a wait may have made longer.
func (w *lockWaits) isContended() bool {
	return time.Since(time.Unix(0, w.contendedAt.Load())) < 2*contentionTime
}
