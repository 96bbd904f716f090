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
