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
	"example.com/providerd/store/postgres/link"
	"example.com/providerd/store/sqlite"
)

// DatabaseURL is the value of a flag that names a database: a SQLite file, or a database on a PostgreSQL server.
type DatabaseURL struct {
	Text string
	// Path is the path of a SQLite database; "" for a database on a server.
	Path string
	// Postgres is the URL of a database on a server.
	Postgres link.URL
}

// UnmarshalText parses the URL, or the path of a SQLite database such as data/x.db.
func (u *DatabaseURL) UnmarshalText(text []byte) (err error) {
	u.Text = string(text)
	if link.IsURL(u.Text) {
		u.Postgres, err = link.ParseURL(u.Text)
		return err
	}
	if !strings.Contains(u.Text, ":") && !strings.Contains(u.Text, "//") && filepath.Ext(u.Text) == ".db" {
		u.Text = sqlite.Scheme + u.Text
	}
	path, err := sqlite.Path(u.Text)
	switch u.Path = path; {
	case err != nil:
		return fmt.Errorf("%w or postgres://USER@HOST/DATABASE", err)
	case strings.Contains(path, "?"):
		return errors.New("sqlite: takes a path without parameters; remove the question mark and what follows it")
	case path == ":memory:":
		return errors.New("sqlite::memory: would be lost when the program ends; use the path of a file")
	case strings.Contains(path, "://"), strings.HasPrefix(path, "//"):
		return errors.New("sqlite: takes a path, not a URL")
	}
	return checkPath(path)
}

// CheckPassword refuses a URL with a password that was passed as an argument.
func (u DatabaseURL) CheckPassword(flag string, arguments []string) error {
	isArgument := func(argument string) bool { return strings.Contains(argument, u.Text) }
	if !u.Postgres.HasPassword() || !slices.ContainsFunc(arguments, isArgument) {
		return nil
	}
	return fmt.Errorf("--%s: other users can see a password in an argument; set PROVIDERD_%s to the URL, "+
		"or put the password into a file and set PGPASSFILE to its path", flag, strings.ToUpper(flag))
}

// Create opens the database, creates it if it does not exist, and migrates it to the schema of this program. If it must
// be alone, a database with tables of other programs is refused.
func (u DatabaseURL) Create(ctx context.Context, logger *slog.Logger, isAlone bool) (database.Database, error) {
	switch {
	case u.Path != "":
		return sqlite.Create(ctx, u.Path, logger)
	case isAlone:
		return postgres.CreateAlone(ctx, u.Postgres, logger)
	default:
		return postgres.Create(ctx, u.Postgres, logger)
	}
}

// Open opens the database without migrating it.
func (u DatabaseURL) Open(ctx context.Context, logger *slog.Logger) (database.Database, error) {
	if u.Path != "" {
		return sqlite.Open(ctx, u.Path, logger)
	}
	return postgres.Open(ctx, u.Postgres, logger)
}

// OpenReadOnly opens the database for reading, even if it is damaged.
func (u DatabaseURL) OpenReadOnly(ctx context.Context) (database.View, error) {
	if u.Path != "" {
		return sqlite.OpenReadOnly(ctx, u.Path)
	}
	return postgres.OpenReadOnly(ctx, u.Postgres)
}

// Migrate migrates the database, which over SQLite must exist, to the schema version of this program.
func (u DatabaseURL) Migrate(ctx context.Context, logger *slog.Logger) error {
	if u.Path != "" {
		return sqlite.Migrate(ctx, u.Path, logger)
	}
	return postgres.Migrate(ctx, u.Postgres, logger)
}

// Dir returns the directory of the file that symbolic links lead to; SQLite keeps its other files there. It returns ""
// for a database on a server.
func (u DatabaseURL) Dir() string {
	if u.Path == "" {
		return ""
	}
	if target, err := filepath.EvalSymlinks(u.Path); err == nil {
		return filepath.Dir(target)
	}
	return filepath.Dir(u.Path)
}

// DefaultKeyset returns the path of the keyset if no flag names it; "" if a flag must.
func (u DatabaseURL) DefaultKeyset() string {
	if u.Path == "" {
		return ""
	}
	return filepath.Join(u.Dir(), "keyset.json")
}
