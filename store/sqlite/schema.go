package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"math"

	"github.com/pressly/goose/v3"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite/connection"
)

//go:embed migrations/*.sql
var embedded embed.FS

// migrate migrates the database to the schema version of this program.
func migrate(ctx context.Context, db *sql.DB, path string) error {
	schema, err := readSchema(ctx, db, path)
	if err != nil && !errors.Is(err, database.ErrNoDatabase) {
		return err
	}
	if schema.Version == 0 {
		if err := identify(ctx, db); err != nil {
			return fmt.Errorf("set the application_id of %s: %w", path, err)
		}
	} else if err := schema.Check(); !errors.Is(err, database.ErrOlder) {
		return database.Wrap(path, err)
	}
	_, err = database.MigrateUp(ctx, goose.DialectSQLite3, db, embedded)
	return database.Wrap("migrate database "+path, connection.Classify(err))
}

// identify sets the application_id and copies it into the file, where ReadHeader reads it. The first checkpoint
// might otherwise copy other pages but not this one, if it changed after a reader had begun.
func identify(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", connection.ApplicationID)); err != nil {
		return connection.Classify(err)
	}
	isBusy, err := connection.CopyWAL(ctx, db, "FULL")
	if isBusy {
		return fmt.Errorf("%w: another program reads the new database", database.ErrUnavailable)
	}
	return err
}

// prepareFunc migrates a database or returns an error if this program cannot use it.
type prepareFunc func(ctx context.Context, db *sql.DB, path string) error

// checkSchema returns a function that reads the schema version and checks it. It returns the errors of both.
func checkSchema(check func(database.Schema) error) prepareFunc {
	return func(ctx context.Context, db *sql.DB, path string) error {
		schema, err := readSchema(ctx, db, path)
		if err != nil {
			return err
		}
		return database.Wrap(path, check(schema))
	}
}

// readSchema reads the schema version. It returns ErrNoDatabase, together with the version of this program, for an
// empty database, ErrForeign or ErrUnavailable.
func readSchema(ctx context.Context, db *sql.DB, path string) (database.Schema, error) {
	program, err := SchemaVersion()
	schema := database.Schema{Program: program}
	if err != nil {
		return schema, err
	}
	var id, tables, versioned int
	const query = `SELECT application_id, (SELECT count(*) FROM sqlite_master),
		(SELECT count(*) FROM sqlite_master WHERE name = 'goose_db_version') FROM pragma_application_id`
	if err := db.QueryRowContext(ctx, query).Scan(&id, &tables, &versioned); err != nil {
		return schema, fmt.Errorf("read database %s: %w", path, connection.Classify(err))
	}
	switch {
	case id == 0 && tables == 0:
		return schema, fmt.Errorf("%w in %s", database.ErrNoDatabase, path)
	case id != connection.ApplicationID:
		return schema, fmt.Errorf("%w: %s has application_id %d", database.ErrForeign, path, id)
	case versioned == 0:
		return schema, nil
	}
	if err := db.QueryRowContext(ctx, selectSchemaVersion).Scan(&schema.Version); err != nil {
		return schema, fmt.Errorf("read the schema version of %s: %w", path, connection.Classify(err))
	}
	schema.MinProgram = schema.Version
	return schema, nil
}

// SchemaVersion returns the schema version of this program.
func SchemaVersion() (int64, error) { return database.ProgramVersion(embedded) }

const selectSchemaVersion = "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied"

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
