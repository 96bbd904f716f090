package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"log/slog"

	"github.com/pressly/goose/v3"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

//go:embed migrations/*.sql
var embedded embed.FS

// Migrate migrates the existing database at path to the schema version of this program, as Create does. Errors outside
// of the migrations go to logger. It returns the errors of Open except ErrOlder.
func Migrate(ctx context.Context, path string, logger *slog.Logger) error {
	opened, err := openExisting(ctx, path, logger, func(ctx context.Context, db *sql.DB, path string) error {
		// migrate would make a database of an empty file, which only Create may do.
		if _, err := readSchema(ctx, db, path); err != nil {
			return err
		}
		return migrate(ctx, db, path)
	})
	if err != nil {
		return err
	}
	return opened.Close()
}

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
	return database.Wrap("migrate database "+path, classify(err))
}

// identify sets the application_id and copies it into the file, where isBlank reads it. The first checkpoint might
// otherwise copy other pages but not this one, if it changed after a reader had begun.
func identify(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
		return classify(err)
	}
	isBusy, err := copyWAL(ctx, db, "FULL")
	if isBusy {
		return fmt.Errorf("%w: another program reads the new database", database.ErrUnavailable)
	}
	return err
}

// checkSchema returns a function that reads the schema version and passes it to check. It returns the errors of
// readSchema and check.
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
	if err := db.QueryRowContext(ctx, selectSchemaVersion).Scan(&schema.Version); err != nil {
		return schema, fmt.Errorf("read the schema version of %s: %w", path, classify(err))
	}
	schema.MinProgram = schema.Version
	return schema, nil
}

// SchemaVersion returns the schema version of this program.
func SchemaVersion() (int64, error) { return database.ProgramVersion(embedded) }

const selectSchemaVersion = "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied"

// CheckSchema returns database.ErrNewer if this program does not know the schema version. It runs in each transaction,
// because a newer version of this program may have migrated the database since it was opened. That version might not be
// able to read what this program writes.
func (d *Database) CheckSchema(tx *gorm.DB) error {
	var version int64
	err := tx.Raw(selectSchemaVersion).Scan(&version).Error
	if err != nil && tx.Statement.Context.Err() == nil {
		err = fmt.Errorf("%w: %w", database.ErrUnavailable, err)
	}
	if err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	if version > d.schemaVersion {
		return fmt.Errorf("%w: %w: its schema version is %d, newer than this program's %d; use a newer providerd",
			database.ErrUnavailable, database.ErrNewer, version, d.schemaVersion)
	}
	return nil
}
