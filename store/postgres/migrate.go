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

// schemaVersion is the version of the last migration.
const schemaVersion = 2

// supportTable is made by the first migration, together with the others of that level.
const supportTable = "schema_support"

// SchemaVersion returns the schema version of this program.
func SchemaVersion() int64 { return schemaVersion }

const (
	// lockInterval and lockTries say how often, and how many times, a program looks whether another one has migrated. That
	// is longer than the lock of a killed one lasts, which is 30 s in earlier releases.
	lockInterval = 200 * time.Millisecond
	lockTries    = 200
	// lockLease is how long the lock of a killed program lasts. A live one renews it each heartbeatInterval.
	lockLease = 15 * time.Second
	heartbeatInterval = 3 * time.Second
	// announceDelay is how long a program waits for another one before it says so.
	announceDelay = time.Second
)

// Migrate brings the database of a URL to a level of the schema, as Create does to that of this program, and returns
// the level that it had, 0 for one without tables. That is the level itself if another program has migrated meanwhile.
// The logger gets what goes wrong beside the migrations.
//
// It returns an error for a level that this program does not know or that is below that of the database, or those of
// Create but for ErrNewer.
func Migrate(ctx context.Context, url URL, logger *slog.Logger, level int64) (before int64, err error) {
	opened, err := open(ctx, url, logger, func(ctx context.Context, db *sql.DB) error {
		schema, err := readSchema(ctx, db)
		if err != nil && !errors.Is(err, database.ErrNoDatabase) {
			return err
		}
		before = schema.Version
		if err := schema.CheckTarget(level); err != nil {
			return err
		}
		isDone, err := migrateUp(ctx, db, logger, level)
		if err == nil && !isDone {
			before = level
		}
		return err
	})
	if err != nil {
		return before, err
	}
	return before, opened.Close()
}

// migrator returns what brings a database to the level of this program, and says so where it did.
func migrator(logger *slog.Logger) preparation {
	return func(ctx context.Context, db *sql.DB) error {
		err := checkSchema(ctx, db)
		if err == nil || !errors.Is(err, database.ErrNoDatabase) && !errors.Is(err, database.ErrOlder) {
			return err
		}
		isDone, err := migrateUp(ctx, db, logger, schemaVersion)
		if err != nil {
			return err
		}
		if isDone {
			logger.Info("migrated the database", slog.Int64("level", schemaVersion))
		}
		return checkSchema(ctx, db)
	}
}

// migrateUp takes the steps up to a level, and reports whether there were any. Programs that do so at a time take turns
// by a row in a table: locks of sessions are lost behind a pooler.
func migrateUp(ctx context.Context, db *sql.DB, logger *slog.Logger, level int64) (isDone bool, err error) {
	locker, err := lock.NewPostgresTableLocker(lock.WithTableLockTimeout(lockInterval, lockTries),
		lock.WithTableLeaseDuration(lockLease), lock.WithTableHeartbeatInterval(heartbeatInterval))
	if err != nil {
		return false, fmt.Errorf("lock the schema: %w", err)
	}
	isDone, err = database.MigrateUp(ctx, goose.DialectPostgres, db, migrations, level,
		goose.WithLocker(announcingLocker{locker, logger}))
	if err != nil {
		return false, fmt.Errorf("migrate database: %w", unavailable(err))
	}
	return isDone, nil
}

// announcingLocker says what it waits for.
type announcingLocker struct {
	lock.Locker
	logger *slog.Logger
}

// Lock waits for the program that migrates.
func (l announcingLocker) Lock(ctx context.Context, db *sql.DB) error {
	timer := time.AfterFunc(announceDelay, func() { l.announce(ctx, db) })
	defer timer.Stop()
	if err := l.Locker.Lock(ctx, db); err != nil {
		return fmt.Errorf("wait for the program that migrates: %w", err)
	}
	return nil
}

func (l announcingLocker) announce(ctx context.Context, db *sql.DB) {
	const holder = "SELECT locked_by, lease_expires_at FROM " + lock.DefaultLockTableName + " WHERE locked"
	var program string
	var until time.Time
	if err := db.QueryRowContext(ctx, holder).Scan(&program, &until); err != nil {
		return
	}
	l.logger.Warn("waiting for another program that migrates the database; its lock expires if it was killed",
		slog.String("program", program), slog.Time("until", until))
}

// checkSchema compares the schema with the one that this program knows. It returns ErrNoDatabase for a database without
// tables, ErrForeign, ErrOlder, ErrNewer or ErrUnavailable.
func checkSchema(ctx context.Context, db *sql.DB) error {
	schema, err := readSchema(ctx, db)
	if err != nil {
		return err
	}
	return schema.Check()
}

// readSchema returns the schema version of the database. It returns ErrNoDatabase, and the versions this program knows, if
// providerd's tables do not exist, ErrForeign if tables of another program have their names, or ErrUnavailable.
func readSchema(ctx context.Context, db *sql.DB) (database.Schema, error) {
	schema, err := database.KnownSchema(migrations)
	if err != nil {
		return schema, err
	}
	const look = "SELECT to_regclass($1) IS NOT NULL, to_regclass($2) IS NOT NULL"
	var hasSupport, hasVersion bool
	err = db.QueryRowContext(ctx, look, supportTable, goose.DefaultTablename).Scan(&hasSupport, &hasVersion)
	if err != nil {
		return schema, fmt.Errorf("look at the schema: %w", unavailable(err))
	}
	if !hasVersion || !hasSupport {
		if err := checkNames(ctx, db); err != nil {
			return schema, err
		}
		return schema, database.ErrNoDatabase
	}
	const levels = `SELECT (SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied), oldest_level
		FROM schema_support`
	if err := db.QueryRowContext(ctx, levels).Scan(&schema.Version, &schema.MinProgram); err != nil {
		return schema, fmt.Errorf("read the level of the schema: %w", unavailable(err))
	}
	return schema, nil
}
