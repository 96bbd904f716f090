package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"example.com/providerd/store/database"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migratedTables returns the names of the tables that the migrations create.
func migratedTables() []string {
	return []string{"providers", "applications", "backchannels", "tokens", "keyset", "events", "schema_support"}
}

// SchemaVersion returns the schema version of this program.
func SchemaVersion() (int64, error) { return database.ProgramVersion(migrations) }

const (
	// lockInterval times lockAttempts is how long a program tries to lock the schema: longer than lockLease.
	lockInterval = 200 * time.Millisecond
	lockAttempts = 100
	// lockLease is how long the lock of a killed program lasts. A live one renews it every heartbeatInterval.
	lockLease         = 15 * time.Second
	heartbeatInterval = 3 * time.Second
	// announceDelay is how long a program waits for another one before it logs that.
	announceDelay = time.Second
)

// migrate migrates a database to the schema version of this program and logs if it did. Programs that do so at the same
// time take turns by locking a row in a table, because a pooler breaks session locks.
func migrate(ctx context.Context, db *sql.DB, logger *slog.Logger) error {
	schema, err := readCopied(ctx, db)
	if err == nil {
		err = schema.Check()
	}
	if err == nil || !errors.Is(err, database.ErrNoDatabase) && !errors.Is(err, database.ErrOlder) {
		return err
	}
	locker, err := lock.NewPostgresTableLocker(lock.WithTableLockTimeout(lockInterval, lockAttempts),
		lock.WithTableLeaseDuration(lockLease), lock.WithTableHeartbeatInterval(heartbeatInterval))
	if err != nil {
		return fmt.Errorf("lock the schema: %w", err)
	}
	isDone, err := database.MigrateUp(ctx, goose.DialectPostgres, db, migrations,
		goose.WithLocker(announcingLocker{locker, logger}))
	if err != nil {
		return fmt.Errorf("migrate database: %w", unavailable(err))
	}
	if isDone {
		logger.Info("migrated the database", slog.Int64("version", schema.Program))
	}
	return checkSchema(ctx, db, logger)
}

// migrateAlone is migrate, but returns ErrForeign if a database without providerd's tables has any other table.
func migrateAlone(ctx context.Context, db *sql.DB, logger *slog.Logger) error {
	_, err := readSchema(ctx, db)
	if errors.Is(err, database.ErrNoDatabase) {
		err = checkTables(ctx, db, nil)
	}
	if err == nil {
		err = migrate(ctx, db, logger)
	}
	return err
}

// announcingLocker logs which program it waits for.
type announcingLocker struct {
	lock.Locker
	logger *slog.Logger
}

// Lock waits until no other program migrates.
func (l announcingLocker) Lock(ctx context.Context, db *sql.DB) error {
	timer := time.AfterFunc(announceDelay, func() {
		const holder = "SELECT locked_by, lease_expires_at FROM " + lock.DefaultLockTableName + " WHERE locked"
		var program string
		var until time.Time
		if db.QueryRowContext(ctx, holder).Scan(&program, &until) == nil {
			l.logger.Warn("waiting for another program to migrate the database; if that program was killed, its lock expires",
				slog.String("program", program), slog.Time("until", until.UTC()))
		}
	})
	defer timer.Stop()
	return database.Wrap("wait for the program that migrates", l.Locker.Lock(ctx, db))
}

// checkSchema checks that the database has the schema version of this program. It returns ErrNoDatabase for a database
// without tables, ErrForeign, ErrOlder, ErrNewer or ErrUnavailable.
func checkSchema(ctx context.Context, db *sql.DB, _ *slog.Logger) error {
	schema, err := readSchema(ctx, db)
	if err == nil {
		err = schema.Check()
	}
	return err
}

// readSchema returns the schema version of the database. It returns ErrNoDatabase, together with the version of this
// program, if providerd's tables do not exist, ErrForeign if other programs use their names, or ErrUnavailable.
func readSchema(ctx context.Context, db *sql.DB) (schema database.Schema, err error) {
	if schema.Program, err = SchemaVersion(); err != nil {
		return schema, err
	}
	const query = "SELECT to_regclass('schema_support') IS NOT NULL AND to_regclass($1) IS NOT NULL"
	var isMigrated bool
	if err := db.QueryRowContext(ctx, query, goose.DefaultTablename).Scan(&isMigrated); err != nil {
		return schema, fmt.Errorf("read the schema: %w", unavailable(err))
	}
	if !isMigrated {
		// Other tables are fine: programs may share a database.
		if err := checkTables(ctx, db, migratedTables()); err != nil {
			return schema, err
		}
		return schema, database.ErrNoDatabase
	}
	const versions = `SELECT (SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied),
		coalesce(max(oldest_level), 0) FROM schema_support`
	err = db.QueryRowContext(ctx, versions).Scan(&schema.Version, &schema.MinProgram)
	return schema, database.Wrap("read the schema version", unavailable(err))
}

// selectUncopied selects a sign that another program has copied only some of the rows, or still copies them; "" if
// there is none. The first and the last provider stand for all.
const selectUncopied = `SELECT coalesce(
	(SELECT format('a subscription still changes table %s', srrelid::regclass) FROM pg_subscription_rel
		WHERE srrelid = ANY (ARRAY['providers', 'events', 'tokens', 'keyset']::regclass[]) LIMIT 1),
	(SELECT format('table schema_support has %s rows, not one', count(*)) FROM schema_support HAVING count(*) <> 1),
	(SELECT format('provider %s has no event', pk) FROM providers
		WHERE pk IN ((SELECT min(pk) FROM providers), (SELECT max(pk) FROM providers))
			AND (SELECT id FROM events WHERE event = 'provider created' AND subject = pk LIMIT 1) IS NULL LIMIT 1),
	(SELECT 'table events has no event of a key' FROM keyset
		WHERE NOT EXISTS (SELECT FROM events WHERE event <> 'provider created')), '')`

// readCopied is readSchema, but also returns database.ErrUnavailable if selectUncopied selects a sign.
func readCopied(ctx context.Context, db *sql.DB) (schema database.Schema, err error) {
	if schema, err = readSchema(ctx, db); err != nil {
		return schema, err
	}
	var sign string
	if err := db.QueryRowContext(ctx, selectUncopied).Scan(&sign); err != nil || sign == "" {
		return schema, classify(err)
	}
	return schema, fmt.Errorf("%w: %s: the database was not copied completely; follow the manual's page on upgrading, "+
		"with an empty database", database.ErrUnavailable, sign)
}

// selectOthers selects the first few tables and views in the current schema that have one of the names, if there are
// any names, except those of goose and of extensions. It selects none if another replica has created providerd's tables
// in the meantime: one snapshot has either all of them or none.
const selectOthers = `WITH relations AS (
		SELECT * FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'f', 'v', 'm')
	), others AS (
		SELECT relname FROM relations r WHERE ($1::text[] IS NULL OR relname = ANY ($1))
			AND relname NOT IN ('` + goose.DefaultTablename + `', '` + lock.DefaultLockTableName + `') AND NOT EXISTS (
				SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = r.oid AND d.deptype = 'e')
			AND NOT EXISTS (SELECT FROM relations WHERE relname = 'schema_support')
		ORDER BY 1 LIMIT 5
	) SELECT coalesce(json_agg(relname), '[]')::text FROM others`

// checkTables returns ErrForeign if selectOthers selects any table.
func checkTables(ctx context.Context, db *sql.DB, names []string) error {
	var tables string
	if err := db.QueryRowContext(ctx, selectOthers, names).Scan(&tables); err != nil {
		return fmt.Errorf("list the tables: %w", unavailable(err))
	}
	if tables != "[]" {
		return fmt.Errorf("%w: it has tables of another program: %s", database.ErrForeign, tables)
	}
	return nil
}
