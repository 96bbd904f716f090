package database

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/pressly/goose/v3"
)

// Migration is the step to a level of the schema.
type Migration struct {
	// Level is at least 1.
	Level int64
	// Name says what the step does, in a few words.
	Name string
}

// Migrations reads the names of embedded migrations, such as 00001_schema.sql, the first level first. It fails for
// names of another form.
func Migrations(files fs.FS) ([]Migration, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	var migrations []Migration
	for _, name := range names {
		level, err := goose.NumericComponent(name)
		if err != nil {
			return nil, fmt.Errorf("read migration %s: %w", name, err)
		}
		_, title, _ := strings.Cut(strings.TrimSuffix(name, ".sql"), "_")
		migrations = append(migrations, Migration{Level: level, Name: strings.ReplaceAll(title, "_", " ")})
	}
	return migrations, nil
}

// Schema is how far a database was migrated, beside what this program knows.
type Schema struct {
	// Level is that of the last migration of the database; 0 where it has none.
	Level int64
	// Oldest is the level that a program must have at least to use the database; 0 where it has none.
	Oldest int64
	// Known are the migrations of this program, at least one, the first level first.
	Known []Migration
}

// Program is the level of this program.
func (s Schema) Program() int64 { return s.Known[len(s.Known)-1].Level }

// Check returns nil where this program can use the database as it is, ErrOlder or ErrNewer otherwise.
func (s Schema) Check() error {
	if err := s.CheckKnown(); err != nil {
		return err
	}
	if s.Level < s.Program() {
		return fmt.Errorf("%w: its schema has level %d, this program needs %d", ErrOlder, s.Level, s.Program())
	}
	return nil
}

// CheckKnown is Check that lets older levels pass, as far as the database was made to its end.
func (s Schema) CheckKnown() error {
	switch {
	case s.Level == 0:
		return fmt.Errorf("%w: it was not made to its end", ErrOlder)
	case s.Oldest > s.Program():
		return fmt.Errorf("%w: its schema has level %d, for programs of level %d and later; this one has level %d",
			ErrNewer, s.Level, s.Oldest, s.Program())
	default:
		return nil
	}
}

// CheckTarget refuses a level that this program does not know, and one below that of the database.
func (s Schema) CheckTarget(level int64) error {
	switch {
	case level > s.Program():
		return fmt.Errorf("this program knows levels up to %d; a newer providerd is needed for level %d", s.Program(), level)
	case level < s.Level:
		return fmt.Errorf("the database has level %d, and migrations only lead up: a way down to %d would destroy what "+
			"has been stored since; to go back, put a backup of before in its place", s.Level, level)
	default:
		return nil
	}
}
