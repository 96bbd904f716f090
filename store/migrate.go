package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/sqlite/*.sql
var sqliteMigrations embed.FS

// migrate brings the database to the version of this program. Processes that start at the same time take turns, held
// apart by a lock on the database's folder.
func migrate(ctx context.Context, db *sql.DB, path, keysetPath string) (ring *keyring, err error) {
	err = withLock(ctx, filepath.Dir(path), func() error {
		ring, err = migrateLocked(ctx, db, path, keysetPath)
		return err
	})
	return ring, err
}

func migrateLocked(ctx context.Context, db *sql.DB, path, keysetPath string) (ring *keyring, err error) {
	err = checkVersion(ctx, db, path)
	if err == nil {
		return openKeyringOf(ctx, db, keysetPath)
	}
	if !errors.Is(err, ErrNoDatabase) && !errors.Is(err, ErrOlderDatabase) {
		return nil, err
	}
	create := func() error {
		ring, err = createKeyringOf(ctx, db, keysetPath)
		return err
	}
	// Another database may get its first keys from the same file at this moment.
	if folder := filepath.Dir(keysetPath); isSameFolder(folder, filepath.Dir(path)) {
		err = create()
	} else {
		err = withLock(ctx, folder, create)
	}
	if err != nil {
		return nil, err
	}
	provider, err := migrations(db, ring)
	if err != nil {
		return nil, err
	}
	if _, err := provider.Up(ctx); err != nil {
		return nil, fmt.Errorf("migrate database %s: %w", path, classify(err))
	}
	return ring, nil
}

// unlock gets the keys of a database that is of this program's version.
func unlock(ctx context.Context, db *sql.DB, path, keysetPath string) (*keyring, error) {
	if err := checkVersion(ctx, db, path); err != nil {
		return nil, err
	}
	return openKeyringOf(ctx, db, keysetPath)
}

// checkVersion compares the version of the database with that of this program.
func checkVersion(ctx context.Context, db *sql.DB, path string) error {
	provider, err := migrations(db, nil)
	if err != nil {
		return err
	}
	sources := provider.ListSources()
	known := sources[len(sources)-1].Version

	var tables int
	const countTables = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'goose_db_version'"
	if err := db.QueryRowContext(ctx, countTables).Scan(&tables); err != nil {
		return fmt.Errorf("read database %s: %w", path, classify(err))
	}
	if tables == 0 {
		return fmt.Errorf("%w in %s", ErrNoDatabase, path)
	}
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

// migrations are the steps from one version to the next. Those that seal what earlier versions stored need the keys.
func migrations(db *sql.DB, ring *keyring) (*goose.Provider, error) {
	files, err := fs.Sub(sqliteMigrations, "migrations/sqlite")
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files,
		goose.WithDisableGlobalRegistry(true), goose.WithGoMigrations(
			goose.NewGoMigration(4, &goose.GoFunc{RunTx: ring.sealStored}, nil),
			goose.NewGoMigration(5, &goose.GoFunc{RunDB: scrub}, nil),
		))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return provider, nil
}
