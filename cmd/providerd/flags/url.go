package flags

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

// Location is the location of a database: a SQLite file, or a database on a PostgreSQL server.
type Location interface {
	// Create opens the database, creates it if it does not exist, and migrates it to the schema of this program.
	Create(ctx context.Context, logger *slog.Logger) (database.Database, error)
	// CreateAlone is like Create, but refuses a database with tables of other programs.
	CreateAlone(ctx context.Context, logger *slog.Logger) (database.Database, error)
	// Open opens the database without migrating it.
	Open(ctx context.Context, logger *slog.Logger) (database.Database, error)
	// OpenReadOnly opens the database for reading, even if it is damaged.
	OpenReadOnly(ctx context.Context) (database.View, error)
	// Migrate migrates the database to a schema version, and returns the one that it had.
	Migrate(ctx context.Context, logger *slog.Logger, version int64) (previous int64, err error)
	// Path returns the path of the file, and Dir its directory; "" for a database on a server.
	Path() string
	Dir() string
	// DefaultKeyset returns the path of the keyset if no flag names it; "" if a flag must.
	DefaultKeyset() string
	// files returns the files that must not be used for anything else.
	files() []place
	// hasPassword reports whether the URL contains a password.
	hasPassword() bool
}

// DatabaseURL is the value of a flag that names a database.
type DatabaseURL struct {
	Text string
	Location
}

// UnmarshalText parses the URL.
func (u *DatabaseURL) UnmarshalText(text []byte) error {
	u.Text = string(text)
	if isSQLitePath(u.Text) {
		u.Text = "sqlite:" + u.Text
	}
	if postgres.IsURL(u.Text) {
		url, err := postgres.ParseURL(u.Text)
		u.Location = PostgresURL{url}
		return err
	}
	path, err := sqlite.Path(u.Text)
	u.Location = SQLiteFile(path)
	if err != nil {
		return fmt.Errorf("%w, such as sqlite:data/providerd.db, nor does it begin with postgres://", err)
	}
	switch {
	case strings.Contains(path, "?"):
		return errors.New("sqlite: is followed by a path without parameters; remove the question mark and what follows it")
	case path == ":memory:":
		return errors.New("sqlite::memory: would be lost when the program ends; use the path of a file")
	}
	if strings.Contains(path, "://") || strings.HasPrefix(path, "//") {
		return errors.New("sqlite: is followed by a path, not by a URL")
	}
	return sqlite.CheckName(path)
}

// isSQLitePath reports whether a text that should be a URL is the path of a SQLite database, such as data/x.db, and not
// a mistyped URL.
func isSQLitePath(text string) bool {
	return !strings.Contains(text, ":") && !strings.Contains(text, "//") && filepath.Ext(text) == ".db"
}

// CheckPassword refuses a URL with a password that was passed as an argument.
func (u DatabaseURL) CheckPassword(flag string, arguments []string) error {
	isArgument := func(argument string) bool { return strings.Contains(argument, u.Text) }
	if !u.hasPassword() || !slices.ContainsFunc(arguments, isArgument) {
		return nil
	}
	return fmt.Errorf("--%s: other users can see a password in an argument; set PROVIDERD_%s to the URL, "+
		"or put the password into a file that PGPASSFILE names", flag, strings.ToUpper(flag))
}
