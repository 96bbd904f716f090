package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"example.com/providerd/store/database"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schemaLevel is that of the last migration.
const schemaLevel = 2

const (
	// lockInterval and lockTries say how often, and how many times, a program looks whether another one has migrated.
	lockInterval = 200 * time.Millisecond
	lockTries    = 150
)

// migrate brings the database to the level of this program. Programs that do so at a time take turns by a row in a
// table: locks of sessions are lost behind a pooler.
func migrate(ctx context.Context, db *sql.DB) error {
	err := checkLevel(ctx, db)
	if err == nil || !errors.Is(err, database.ErrNone) && !errors.Is(err, database.ErrOlder) {
		return err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	locker, err := lock.NewPostgresTableLocker(lock.WithTableLockTimeout(lockInterval, lockTries))
	if err != nil {
		return fmt.Errorf("lock the schema: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithDisableGlobalRegistry(true), goose.WithLocker(locker))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate database: %w", unavailable(err))
	}
	return checkLevel(ctx, db)
}

// checkLevel compares the schema with the one that this program knows. It returns ErrNone for a database without
// tables, ErrForeign, ErrOlder, ErrNewer or ErrUnavailable.
func checkLevel(ctx context.Context, db *sql.DB) error {
	const look = `SELECT to_regclass('providers') IS NOT NULL, to_regclass('schema_support') IS NOT NULL,
		to_regclass('goose_db_version') IS NOT NULL`
	var hasProviders, hasSupport, hasVersion bool
	if err := db.QueryRowContext(ctx, look).Scan(&hasProviders, &hasSupport, &hasVersion); err != nil {
		return fmt.Errorf("look at the schema: %w", unavailable(err))
	}
	switch {
	case hasProviders && !hasSupport:
		return fmt.Errorf("%w: it has a table named providers of another program; name another database", database.ErrForeign)
	case !hasVersion || !hasSupport:
		return database.ErrNone
	}
	var level, oldest int64
	const levels = `SELECT (SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied), oldest_level
		FROM schema_support`
	if err := db.QueryRowContext(ctx, levels).Scan(&level, &oldest); err != nil {
		return fmt.Errorf("read the level of the schema: %w", unavailable(err))
	}
	switch {
	case level < schemaLevel:
		return fmt.Errorf("%w: its schema has level %d, this program needs %d", database.ErrOlder, level, schemaLevel)
	case oldest > schemaLevel:
		return fmt.Errorf("%w: its schema has level %d, for programs of level %d and later; this one has level %d",
			database.ErrNewer, level, oldest, schemaLevel)
	default:
		return nil
	}
}
