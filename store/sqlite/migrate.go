package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"example.com/providerd/store/database"
)

//go:embed migrations/*.sql
var schema embed.FS

// migrate brings the database to the version of this program.
func migrate(ctx context.Context, db *sql.DB, path string) error {
	err := checkVersion(ctx, db, path)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, database.ErrNone):
		if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
			return fmt.Errorf("mark database %s as one of providerd: %w", path, classify(err))
		}
	case !errors.Is(err, database.ErrOlder):
		return err
	}
	provider, err := migrations(db)
	if err != nil {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate database %s: %w", path, classify(err))
	}
	return nil
}

// checkVersion compares the database with what this program makes. It returns ErrNone for one without anything in
// it, ErrForeign, ErrOlder, ErrNewer or ErrUnavailable.
func checkVersion(ctx context.Context, db *sql.DB, path string) error {
	version, known, err := readVersion(ctx, db, path)
	if err != nil {
		return err
	}
	if version < known {
		return fmt.Errorf("%w: %s has version %d, this program needs %d", database.ErrOlder, path, version, known)
	}
	return nil
}

// checkKnown is checkVersion that lets older versions pass, as far as they were made to their end.
func checkKnown(ctx context.Context, db *sql.DB, path string) error {
	_, _, err := readVersion(ctx, db, path)
	return err
}

// readVersion returns the version of the database, and the one that this program makes. It returns ErrNone for one
// without anything in it, ErrForeign, ErrOlder for one that was not made to its end, ErrNewer or ErrUnavailable.
func readVersion(ctx context.Context, db *sql.DB, path string) (version, known int64, err error) {
	var id, tables, versioned int
	const look = `SELECT application_id, (SELECT count(*) FROM sqlite_master),
		(SELECT count(*) FROM sqlite_master WHERE name = 'goose_db_version') FROM pragma_application_id`
	if err := db.QueryRowContext(ctx, look).Scan(&id, &tables, &versioned); err != nil {
		return 0, 0, fmt.Errorf("read database %s: %w", path, classify(err))
	}
	switch {
	case id == 0 && tables == 0:
		return 0, 0, fmt.Errorf("%w in %s", database.ErrNone, path)
	case id != applicationID:
		return 0, 0, fmt.Errorf("%w: %s (its application_id is %d)", database.ErrForeign, path, id)
	case versioned == 0:
		return 0, 0, unfinished(path)
	}
	provider, err := migrations(db)
	if err != nil {
		return 0, 0, err
	}
	sources := provider.ListSources()
	known = sources[len(sources)-1].Version
	const selectVersion = "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied"
	if err := db.QueryRowContext(ctx, selectVersion).Scan(&version); err != nil {
		return 0, 0, fmt.Errorf("read the version of database %s: %w", path, classify(err))
	}
	switch {
	case version < 1:
		return 0, 0, unfinished(path)
	case version > known:
		return 0, 0, fmt.Errorf("%w: %s has version %d, this program knows %d", database.ErrNewer, path, version, known)
	default:
		return version, known, nil
	}
}

func unfinished(path string) error {
	return fmt.Errorf("%w: %s was not made to its end", database.ErrOlder, path)
}

// migrations are the steps from one version to the next.
func migrations(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(schema, "migrations")
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return provider, nil
}
