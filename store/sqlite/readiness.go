package sqlite

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite/connection"
)

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
	if err := connection.RequireFree(d.dir, 0); err != nil {
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
	generation, err := connection.ReadGeneration(ctx, pool)
	if err != nil {
		return err
	}
	return connection.SetGeneration(ctx, pool, generation)
}

// growWAL inserts a row that exceeds the 2 MB page cache by more than the largest create writes, and rolls it back.
// SQLite spills the pages that do not fit to the WAL right away. They stay there, after the last commit frame, and the
// next transactions overwrite them. Rewriting a page would prove less: under a quota or a file size limit the WAL may
// have space for that page and still be unable to grow.
func growWAL(tx *gorm.DB) error {
	for _, statement := range []string{
		"SAVEPOINT probe",
		fmt.Sprintf("INSERT INTO applications (slug, name) VALUES (hex(randomblob(16)), hex(zeroblob(%d)))",
			connection.MinFreeBytes/2),
		"ROLLBACK TO probe",
	} {
		if err := tx.Exec(statement).Error; err != nil {
			return fmt.Errorf("append to the WAL: %w", err)
		}
	}
	return nil
}

// NewPKs returns the pks after the last one.
func (*Database) NewPKs(tx *gorm.DB, count int) (pks []int64, err error) {
	err = tx.Raw("WITH RECURSIVE pks (pk) AS (SELECT coalesce(("+selectLastPK+"), 0) + 1 UNION ALL "+
		"SELECT pk + 1 FROM pks LIMIT ?) SELECT pk FROM pks", count).Scan(&pks).Error
	return pks, err
}
