package database

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pressly/goose/v3"
)

// Migration is the step to a schema version.
type Migration struct {
	// Version is at least 1.
	Version int64
	// Name describes the step in a few words.
	Name string
}

// KnownSchema returns a Schema with the embedded migrations, which have names such as migrations/00001_schema.sql. It
// fails for names of another form.
func KnownSchema(embedded fs.FS) (schema Schema, err error) {
	names, err := fs.Glob(embedded, "migrations/*.sql")
	if err != nil {
		return schema, fmt.Errorf("read migrations: %w", err)
	}
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return schema, fmt.Errorf("read migration %s: %w", name, err)
		}
		_, title, _ := strings.Cut(strings.TrimSuffix(name, ".sql"), "_")
		schema.Known = append(schema.Known, Migration{Version: version, Name: strings.ReplaceAll(title, "_", " ")})
	}
	return schema, nil
}

// ProgramVersion returns the version of the last embedded migration.
func ProgramVersion(embedded fs.FS) (int64, error) {
	schema, err := KnownSchema(embedded)
	if err != nil {
		return 0, err
	}
	return schema.ProgramVersion(), nil
}

// MigrateUp applies the pending migrations up to a version, and reports whether there were any.
func MigrateUp(
	ctx context.Context, dialect goose.Dialect, db *sql.DB, embedded fs.FS, version int64, options ...goose.ProviderOption,
) (isDone bool, err error) {
	files, err := fs.Sub(embedded, "migrations")
	if err != nil {
		return false, fmt.Errorf("read migrations: %w", err)
	}
	provider, err := goose.NewProvider(dialect, db, files, append(options, goose.WithDisableGlobalRegistry(true))...)
	if err != nil {
		return false, fmt.Errorf("read migrations: %w", err)
	}
	steps, err := provider.UpTo(ctx, version)
	return len(steps) > 0, err //nolint:wrapcheck // The caller names the database.
}

// Schema is the schema version of a database, and the migrations that this program knows.
type Schema struct {
	// Version is the version of the last migration applied to the database, or 0 if there is none.
	Version int64
	// MinProgram is the lowest ProgramVersion that can use the database, or 0 if the database has no migrations.
	MinProgram int64
	// Known lists the migrations of this program, at least one, in ascending order.
	Known []Migration
}

// ProgramVersion returns the schema version of this program.
func (s Schema) ProgramVersion() int64 { return s.Known[len(s.Known)-1].Version }

// Check returns ErrOlder or ErrNewer if this program cannot use the database as it is.
func (s Schema) Check() error {
	if err := s.CheckKnown(); err != nil {
		return err
	}
	if s.Version < s.ProgramVersion() {
		return fmt.Errorf("%w: its schema version is %d but this program needs %d", ErrOlder, s.Version, s.ProgramVersion())
	}
	return nil
}

// CheckKnown is Check, but accepts older versions. It still returns ErrOlder if the creation of the database was
// interrupted.
func (s Schema) CheckKnown() error {
	switch {
	case s.Version == 0:
		return fmt.Errorf("%w: its creation was interrupted", ErrOlder)
	case s.MinProgram > s.ProgramVersion():
		return fmt.Errorf("%w: its schema version is %d and needs a program that knows version %d; this one knows up to %d",
			ErrNewer, s.Version, s.MinProgram, s.ProgramVersion())
	default:
		return nil
	}
}

// CheckTarget returns an error for a version that this program does not know, or that is below the database's.
func (s Schema) CheckTarget(version int64) error {
	switch {
	case version > s.ProgramVersion():
		return fmt.Errorf("this program knows schema versions up to %d; use a newer providerd for version %d",
			s.ProgramVersion(), version)
	case version < s.Version:
		return fmt.Errorf("the database has schema version %d, and migrations are forward-only: going back to %d would "+
			"destroy what has been stored since; restore a backup taken before the migration instead", s.Version, version)
	default:
		return nil
	}
}
