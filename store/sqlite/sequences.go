package sqlite

import (
	"context"
	"fmt"
	"math"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// selectLargest selects the largest pk in use, or of a deleted provider, which only events contain.
const selectLargest = `SELECT max(pk) FROM (SELECT max(pk) AS pk FROM providers UNION ALL
	SELECT max(subject) FROM events WHERE event = 'provider deleted' AND event <> 'provider created')`

// selectSequences selects whether the last pk is behind, and the tables whose sequence is at its end.
const selectSequences = `SELECT coalesce((` + selectLargest + `), 0) >
	coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name = 'providers'), 0) AS is_behind,
	coalesce((SELECT group_concat(name, ', ') FROM sqlite_sequence WHERE seq >= ?), '') AS ended`

// readSequences reports whether the last pk is behind. A copy made table by table can lack the table sqlite_sequence;
// AUTOINCREMENT then skips only the keys of rows. It returns database.ErrUnavailable if a sequence is at its end.
func readSequences(tx *gorm.DB) (isBehind bool, err error) {
	var read struct {
		IsBehind bool
		Ended    string
	}
	if err := tx.Raw(selectSequences, math.MaxInt64).Scan(&read).Error; err != nil {
		return false, fmt.Errorf("read the table sqlite_sequence: %w", err)
	}
	if read.Ended != "" {
		return false, fmt.Errorf("%w: the last key is the largest possible, %d, so no row can be added to these tables: %s; "+
			"restore a backup, or correct the table sqlite_sequence", database.ErrUnavailable, math.MaxInt64, read.Ended)
	}
	return read.IsBehind, nil
}

// CheckKeys compares the last pk with those in use.
func (v *View) CheckKeys(ctx context.Context) (isBehind bool, err error) {
	return readSequences(v.Reader().WithContext(ctx))
}

// AdvanceKeys compares without a lock first.
func (d *Database) AdvanceKeys(ctx context.Context) error {
	isBehind, err := readSequences(d.Reader().WithContext(ctx))
	if err != nil || !isBehind {
		return err
	}
	return d.Write(ctx, func(*gorm.DB) error { return nil })
}

// advance replaces the row of sqlite_sequence, which has no UNIQUE constraint to upsert on.
func (d *Database) advance(tx *gorm.DB) error {
	isBehind, err := readSequences(tx)
	if err != nil || !isBehind {
		return err
	}
	for _, statement := range []string{
		"DELETE FROM sqlite_sequence WHERE name = 'providers'",
		"INSERT INTO sqlite_sequence (name, seq) SELECT 'providers', (" + selectLargest + ")",
	} {
		if err := tx.Exec(statement).Error; err != nil {
			return fmt.Errorf("move the last pk: %w", err)
		}
	}
	d.logger.Warn("moved the last pk, which was behind the pks in use, because another program has copied rows")
	return nil
}
