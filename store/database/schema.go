package database

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pressly/goose/v3"
)

// Migration is the step to a level of the schema.
type Migration struct {
	// Version is at least 1.
	Version int64
	// Name says what the step does, in a few words.
	Name string
}

// KnownSchema is what a program knows of a schema from the names of its embedded migrations, such as
// migrations/00001_schema.sql. It fails for names of another form.
func KnownSchema(embedded fs.FS) (schema Schema, err error) {
	names, err := fs.Glob(embedded, "migrations/*.sql")
	if err != nil {
		return schema, fmt.Errorf("read migrations: %w", err)
	}
	for _, name := range names {
		level, err := goose.NumericComponent(name)
		if err != nil {
			return schema, fmt.Errorf("read migration %s: %w", name, err)
		}
		_, title, _ := strings.Cut(strings.TrimSuffix(name, ".sql"), "_")
		schema.Known = append(schema.Known, Migration{Version: level, Name: strings.ReplaceAll(title, "_", " ")})
	}
	return schema, nil
}

// MigrateUp takes the steps up to a level, and reports whether there were any.
func MigrateUp(
	ctx context.Context, dialect goose.Dialect, db *sql.DB, embedded fs.FS, level int64, options ...goose.ProviderOption,
) (isDone bool, err error) {
	files, err := fs.Sub(embedded, "migrations")
	if err != nil {
		return false, fmt.Errorf("read migrations: %w", err)
	}
	provider, err := goose.NewProvider(dialect, db, files, append(options, goose.WithDisableGlobalRegistry(true))...)
	if err != nil {
		return false, fmt.Errorf("read migrations: %w", err)
	}
	steps, err := provider.UpTo(ctx, level)
	return len(steps) > 0, err //nolint:wrapcheck // The caller names the database.
}

// Schema is how far a database was migrated, beside what this program knows.
type Schema struct {
	// Version is that of the last migration of the database; 0 where it has none.
	Version int64
	// MinProgram is the level that a program must have at least to use the database; 0 where it has none.
	MinProgram int64
	// Known are the migrations of this program, at least one, the first level first.
	Known []Migration
}

// ProgramVersion is the level of this program.
func (s Schema) ProgramVersion() int64 { return s.Known[len(s.Known)-1].Version }

// Check returns nil where this program can use the database as it is, ErrOlder or ErrNewer otherwise.
func (s Schema) Check() error {
	if err := s.CheckKnown(); err != nil {
		return err
	}
	if s.Version < s.ProgramVersion() {
		return fmt.Errorf("%w: its schema has level %d, this program needs %d", ErrOlder, s.Version, s.ProgramVersion())
	}
	return nil
}

// CheckKnown is Check that lets older levels pass, as far as the database was made to its end.
func (s Schema) CheckKnown() error {
	switch {
	case s.Version == 0:
		return fmt.Errorf("%w: it was not made to its end", ErrOlder)
	case s.MinProgram > s.ProgramVersion():
		return fmt.Errorf("%w: its schema has level %d, for programs of level %d and later; this one has level %d",
			ErrNewer, s.Version, s.MinProgram, s.ProgramVersion())
	default:
		return nil
	}
}

// CheckTarget refuses a level that this program does not know, and one below that of the database.
func (s Schema) CheckTarget(level int64) error {
	switch {
	case level > s.ProgramVersion():
		return fmt.Errorf("this program knows levels up to %d; a newer providerd is needed for level %d", s.ProgramVersion(), level)
	case level < s.Version:
		return fmt.Errorf("the database has level %d, and migrations only lead up: a way down to %d would destroy what "+
			"has been stored since; to go back, put a backup of before in its place", s.Version, level)
	default:
		return nil
	}
}
