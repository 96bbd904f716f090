package sqlite

import (
	"context"
	"fmt"
	"math"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

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
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	return faults, nil
}

// selectLargest selects the largest pk in use, or of a deleted provider, which only events contain.
const selectLargest = `SELECT max(pk) FROM (SELECT max(pk) AS pk FROM providers UNION ALL
	SELECT max(subject) FROM events WHERE event = 'provider deleted' AND event <> 'provider created')`

// selectSequences selects whether the last pk is behind, and the tables whose sequence is at its end.
const selectSequences = `SELECT coalesce((` + selectLargest + `), 0) >
	coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name = 'providers'), 0) AS is_behind,
	coalesce((SELECT group_concat(name, ', ') FROM sqlite_sequence WHERE seq >= ?), '') AS ended`

// check reports whether the last pk is behind. A copy made table by table can lack the table sqlite_sequence;
// AUTOINCREMENT then skips only the keys of rows. It returns database.ErrUnavailable if the schema has faults, or a
// sequence is at its end.
func check(tx *gorm.DB) (isBehind bool, err error) {
	faults, err := readFaults(tx)
	if err == nil {
		err = database.SchemaError(faults)
	}
	if err != nil {
		return false, err
	}
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

// Check reports whether Prepare has a pk to move, and returns its errors.
func (v *View) Check(ctx context.Context) (isBehind bool, err error) {
	return check(v.Reader().WithContext(ctx))
}

// Prepare checks without a lock first.
func (d *Database) Prepare(ctx context.Context) error {
	isBehind, err := check(d.Reader().WithContext(ctx))
	if err != nil || !isBehind {
		return err
	}
	return d.Write(ctx, func(*gorm.DB) error { return nil })
}

// advance replaces the row of sqlite_sequence, which has no UNIQUE constraint to upsert on.
func (d *Database) advance(tx *gorm.DB) error {
	isBehind, err := check(tx)
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
