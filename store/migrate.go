package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/sqlite/*.sql
var sqliteMigrations embed.FS

// migrate brings the database to the version of this program, and gets its keys, which it makes for a new database.
func migrate(ctx context.Context, db *sql.DB, path, keysetPath string) (*keyring, error) {
	err := checkVersion(ctx, db, path)
	switch {
	case errors.Is(err, ErrNoDatabase):
		if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
			return nil, fmt.Errorf("mark database %s as one of providerd: %w", path, classify(err))
		}
	case err != nil && !errors.Is(err, ErrOlderDatabase):
		return nil, err
	}
	if err := removeUnfinished(keysetPath); err != nil {
		return nil, err
	}
	if err != nil {
		provider, err := migrations(db)
		if err != nil {
			return nil, err
		}
		if _, err := provider.Up(ctx); err != nil {
			return nil, fmt.Errorf("migrate database %s: %w", path, classify(err))
		}
	}
	return provideKeyringOf(ctx, db, keysetPath)
}

// unlock gets the keys of a database that is of this program's version.
func unlock(ctx context.Context, db *sql.DB, path, keysetPath string) (*keyring, error) {
	if err := checkVersion(ctx, db, path); err != nil {
		return nil, err
	}
	ring, err := openKeyringOf(ctx, db, keysetPath)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: %s was not made to its end", ErrOlderDatabase, path)
	}
	return ring, err
}

// checkVersion compares the database with what this program makes. It returns ErrNoDatabase for one without anything in
// it, ErrForeignDatabase, ErrOlderDatabase, ErrNewerDatabase or ErrUnavailable.
func checkVersion(ctx context.Context, db *sql.DB, path string) error {
	var id, tables, versioned int
	const look = `SELECT application_id, (SELECT count(*) FROM sqlite_master),
		(SELECT count(*) FROM sqlite_master WHERE name = 'goose_db_version') FROM pragma_application_id`
	if err := db.QueryRowContext(ctx, look).Scan(&id, &tables, &versioned); err != nil {
		return fmt.Errorf("read database %s: %w", path, classify(err))
	}
	switch {
	case id == 0 && tables == 0:
		return fmt.Errorf("%w in %s", ErrNoDatabase, path)
	case id != applicationID:
		return fmt.Errorf("%w: %s (its application_id is %d)", ErrForeignDatabase, path, id)
	case versioned == 0:
		return fmt.Errorf("%w: %s was not made to its end", ErrOlderDatabase, path)
	}
	provider, err := migrations(db)
	if err != nil {
		return err
	}
	sources := provider.ListSources()
	known := sources[len(sources)-1].Version
	var version int64
	const selectVersion = "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied"
	if err := db.QueryRowContext(ctx, selectVersion).Scan(&version); err != nil {
		return fmt.Errorf("read the version of database %s: %w", path, classify(err))
	}
	switch {
	case version > known:
		return fmt.Errorf("%w: %s has version %d, this program knows %d", ErrNewerDatabase, path, version, known)
	case version < known:
		return fmt.Errorf("%w: %s has version %d, this program needs %d", ErrOlderDatabase, path, version, known)
	default:
		return nil
	}
}

// migrations are the steps from one version to the next.
func migrations(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(sqliteMigrations, "migrations/sqlite")
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return provider, nil
}
