package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/sqlite"
)

// DatabaseURL is the value of a flag that names a database: a SQLite file, or a database on a PostgreSQL server.
type DatabaseURL struct {
	Text     string
	path     string
	postgres postgres.URL
}

// UnmarshalText parses the URL, or the path of a SQLite database such as data/x.db.
func (u *DatabaseURL) UnmarshalText(text []byte) (err error) {
	u.Text = string(text)
	if postgres.IsURL(u.Text) {
		u.postgres, err = postgres.ParseURL(u.Text)
		return err
	}
	if !strings.Contains(u.Text, ":") && !strings.Contains(u.Text, "//") && filepath.Ext(u.Text) == ".db" {
		u.Text = sqlite.Scheme + u.Text
	}
	path, err := sqlite.Path(u.Text)
	switch u.path = path; {
	case err != nil:
		return fmt.Errorf("%w or postgres://USER@HOST/DATABASE", err)
	case strings.Contains(path, "?"):
		return errors.New("sqlite: is followed by a path without parameters; remove the question mark and what follows it")
	case path == ":memory:":
		return errors.New("sqlite::memory: would be lost when the program ends; use the path of a file")
	case strings.Contains(path, "://"), strings.HasPrefix(path, "//"):
		return errors.New("sqlite: is followed by a path, not by a URL")
	}
	return sqlite.CheckName(path)
}

// CheckPassword refuses a URL with a password that was passed as an argument.
func (u DatabaseURL) CheckPassword(flag string, arguments []string) error {
	isArgument := func(argument string) bool { return strings.Contains(argument, u.Text) }
	if !u.postgres.HasPassword() || !slices.ContainsFunc(arguments, isArgument) {
		return nil
	}
	return fmt.Errorf("--%s: other users can see a password in an argument; set PROVIDERD_%s to the URL, "+
		"or put the password into a file, and set PGPASSFILE to its path", flag, strings.ToUpper(flag))
}

// Create opens the database, creates it if it does not exist, and migrates it to the schema of this program. If it must
// be alone, a database with tables of other programs is refused.
func (u DatabaseURL) Create(ctx context.Context, logger *slog.Logger, isAlone bool) (database.Database, error) {
	switch {
	case u.path != "":
		return sqlite.Create(ctx, u.path, logger)
	case isAlone:
		return postgres.CreateAlone(ctx, u.postgres, logger)
	default:
		return postgres.Create(ctx, u.postgres, logger)
	}
}

// Open opens the database without migrating it.
func (u DatabaseURL) Open(ctx context.Context, logger *slog.Logger) (database.Database, error) {
	if u.path != "" {
		return sqlite.Open(ctx, u.path, logger)
	}
	return postgres.Open(ctx, u.postgres, logger)
}

// OpenReadOnly opens the database for reading, even if it is damaged.
func (u DatabaseURL) OpenReadOnly(ctx context.Context) (database.View, error) {
	if u.path != "" {
		return sqlite.OpenReadOnly(ctx, u.path)
	}
	return postgres.OpenReadOnly(ctx, u.postgres)
}

// Migrate migrates the database to a schema version, and returns its previous version.
func (u DatabaseURL) Migrate(ctx context.Context, logger *slog.Logger, version int64) (previous int64, err error) {
	if u.path != "" {
		return sqlite.Migrate(ctx, u.path, logger, version)
	}
	return postgres.Migrate(ctx, u.postgres, logger, version)
}

// Postgres returns the URL of a PostgreSQL database.
func (u DatabaseURL) Postgres() postgres.URL { return u.postgres }

// Path returns the path of a SQLite database; "" for a database on a server.
func (u DatabaseURL) Path() string { return u.path }

// Dir returns the directory of the file that symbolic links lead to; SQLite keeps its other files there. It returns ""
// for a database on a server.
func (u DatabaseURL) Dir() string {
	if u.path == "" {
		return ""
	}
	if target, err := filepath.EvalSymlinks(u.path); err == nil {
		return filepath.Dir(target)
	}
	return filepath.Dir(u.path)
}

// DefaultKeyset returns the path of the keyset if no flag names it; "" if a flag must.
func (u DatabaseURL) DefaultKeyset() string {
	if u.path == "" {
		return ""
	}
	return filepath.Join(u.Dir(), "keyset.json")
}
