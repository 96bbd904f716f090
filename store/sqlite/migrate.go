package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"log/slog"

	"github.com/pressly/goose/v3"

	"example.com/providerd/store/database"
)

//go:embed migrations/*.sql
var embedded embed.FS

// Migrate brings the database at path to a level of the schema, as Create does to that of this program, and returns the
// level that it had. The logger gets what goes wrong beside the migrations.
//
// It returns an error for a level that this program does not know or that is below that of the database, or those of
// Open but for ErrOlder and ErrNewer.
func Migrate(ctx context.Context, path string, logger *slog.Logger, level int64) (before int64, err error) {
	opened, err := openExisting(ctx, path, logger, func(ctx context.Context, db *sql.DB, path string) error {
		schema, err := readSchema(ctx, db, path)
		if err != nil {
			return err
		}
		before = schema.Level
		if err := schema.CheckTarget(level); err != nil {
			return wrapPath(path, err)
		}
		return migrateUp(ctx, db, path, level)
	})
	if err != nil {
		return before, err
	}
	return before, opened.Close()
}

// migrate brings the database to the version of this program.
func migrate(ctx context.Context, db *sql.DB, path string) error {
	schema, err := readSchema(ctx, db, path)
	switch {
	case errors.Is(err, database.ErrNoDatabase):
		if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
			return fmt.Errorf("set the application_id of %s: %w", path, classify(err))
		}
	case err != nil:
		return err
	default:
		err = schema.Check()
		if !errors.Is(err, database.ErrOlder) {
			return wrapPath(path, err)
		}
	}
	return migrateUp(ctx, db, path, schema.Program())
}

// migrateUp takes the steps up to a level.
func migrateUp(ctx context.Context, db *sql.DB, path string, level int64) error {
	if _, err := database.MigrateUp(ctx, goose.DialectSQLite3, db, embedded, level); err != nil {
		return fmt.Errorf("migrate database %s: %w", path, classify(err))
	}
	return nil
}

// checkSchema reads how far a database was migrated, and checks it. It returns the errors of readSchema and check.
func checkSchema(check func(database.Schema) error) prepareFunc {
	return func(ctx context.Context, db *sql.DB, path string) error {
		schema, err := readSchema(ctx, db, path)
		if err != nil {
			return err
		}
		return wrapPath(path, check(schema))
	}
}

func wrapPath(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", path, err)
}

// readSchema reads how far the database was migrated. It returns ErrNoDatabase, with what this program knows, for one without
// anything in it, ErrForeign or ErrUnavailable.
func readSchema(ctx context.Context, db *sql.DB, path string) (database.Schema, error) {
	schema, err := database.KnownSchema(embedded)
	if err != nil {
		return database.Schema{}, err
	}
	var id, tables, versioned int
	const look = `SELECT application_id, (SELECT count(*) FROM sqlite_master),
		(SELECT count(*) FROM sqlite_master WHERE name = 'goose_db_version') FROM pragma_application_id`
	if err := db.QueryRowContext(ctx, look).Scan(&id, &tables, &versioned); err != nil {
		return schema, fmt.Errorf("read database %s: %w", path, classify(err))
	}
	switch {
	case id == 0 && tables == 0:
		return schema, fmt.Errorf("%w in %s", database.ErrNoDatabase, path)
	case id != applicationID:
		return schema, fmt.Errorf("%w: %s has application_id %d", database.ErrForeign, path, id)
	case versioned == 0:
		return schema, nil
	}
	if err := db.QueryRowContext(ctx, selectSchemaVersion).Scan(&schema.Level); err != nil {
		return schema, fmt.Errorf("read the schema version of %s: %w", path, classify(err))
	}
	schema.Oldest = schema.Level
	return schema, nil
}

// SchemaVersion is that of the schema which this program makes.
func SchemaVersion() (int64, error) {
	schema, err := database.KnownSchema(embedded)
	if err != nil {
		return 0, err
	}
	return schema.Program(), nil
}
