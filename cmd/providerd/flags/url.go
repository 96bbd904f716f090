package flags

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/sqlite"
)

// Location is the place of a database: a file of SQLite, or a database on a server of PostgreSQL.
type Location interface {
	// Create opens the database, or makes it, and brings it to the version of this program.
	Create(ctx context.Context, logger *slog.Logger) (database.Movable, error)
	// CreateAlone is Create that refuses any database with tables of other programs.
	CreateAlone(ctx context.Context, logger *slog.Logger) (database.Movable, error)
	// Open opens the database as it is.
	Open(ctx context.Context, logger *slog.Logger) (database.Movable, error)
	// OpenReadOnly opens the database to be read alone, whatever is wrong with it.
	OpenReadOnly(ctx context.Context) (database.View, error)
	// Migrate brings the database to a level of the schema, and returns the level that it had.
	Migrate(ctx context.Context, logger *slog.Logger, level int64) (before int64, err error)
	// Path is that of the database's file, and Folder the one that it is in; "" for a database on a server.
	Path() string
	Dir() string
	// DefaultKeyset is where the keyset is that no flag names; "" where a flag must name it.
	DefaultKeyset() string
	// files are those that nothing else may be written to.
	files() []place
	// hasPassword reports whether a password is in the URL.
	hasPassword() bool
}

// DatabaseURL is a location as a flag names it.
type DatabaseURL struct {
	Text string
	Location
}

// UnmarshalText checks the form of the URL.
func (u *DatabaseURL) UnmarshalText(text []byte) error {
	u.Text = string(text)
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
	return sqlite.CheckName(path)
}

// CheckHidden refuses a password that is in an argument, the value of a flag.
func (u DatabaseURL) CheckPassword(flag string, arguments []string) error {
	isArgument := func(argument string) bool { return strings.Contains(argument, u.Text) }
	if !u.hasPassword() || !slices.ContainsFunc(arguments, isArgument) {
		return nil
	}
	return fmt.Errorf("--%s: a password in an argument is in the list of processes; put the URL into PROVIDERD_%s, "+
		"or the password into a file that PGPASSFILE names", flag, strings.ToUpper(flag))
}
