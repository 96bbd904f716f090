package sqlite

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// probeWrite proves that creates can be stored, after one could not: a server that is not ready may get no create that
// would show it. It changes no data. It returns ErrUnavailable.
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
	free, err := freeBytes(d.dir)
	if err != nil {
		return err
	}
	if free < minFreeBytes {
		return fmt.Errorf("%w: the disk of %s has %d bytes free, but %d are needed",
			database.ErrFull, d.dir, free, minFreeBytes)
	}
	err = d.Change(ctx, probe)
	switch {
	case errors.Is(err, database.ErrOutcomeUnknown):
		// It is the outcome of the probe, which no caller sent.
		return fmt.Errorf("%w: %s", database.ErrUnavailable, err.Error())
	case err != nil:
		return fmt.Errorf("%w: %w", database.ErrUnavailable, err)
	}
	d.failed.Store(false)
	return nil
}

// probe does what a create does, and rolls the rows back. It commits a page that stays as it is.
func probe(tx *gorm.DB) error {
	var given assignedPKs
	if err := tx.Raw("SELECT " + pkColumns).Scan(&given).Error; err != nil {
		return fmt.Errorf("read the last pk: %w", err)
	}
	if _, err := given.last(); err != nil {
		return err
	}
	if err := growWAL(tx); err != nil {
		return err
	}
	var generation uint32
	if err := tx.Raw(selectGeneration).Scan(&generation).Error; err != nil {
		return err
	}
	return tx.Exec(setGeneration(generation)).Error
}

// probeBytes exceed the 2 MB of a transaction that SQLite keeps in its cache until the commit, by more than the largest
// create writes.
const probeBytes = minFreeBytes

// growWAL writes a row that is too large for the cache, and rolls it back. What does not fit is appended to the WAL at
// once, and stays there, behind the last commit, as room for the next transactions. Rewriting a page would prove less:
// under a quota or a limit, the WAL may have room for that page, but not grow.
func growWAL(tx *gorm.DB) error {
	for _, statement := range []string{
		"SAVEPOINT probe",
		fmt.Sprintf("INSERT INTO applications (slug, name) VALUES (hex(randomblob(16)), zeroblob(%d))", probeBytes),
		"ROLLBACK TO probe",
	} {
		if err := tx.Exec(statement).Error; err != nil {
			return fmt.Errorf("append to the WAL: %w", err)
		}
	}
	return nil
}
