package flags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/sqlite"
)

// DatabaseFlags is the flag of every command that works on the database.
type DatabaseFlags struct {
	Database DatabaseURL `default:"sqlite:data/providerd.db" env:"PROVIDERD_DATABASE" placeholder:"URL" help:"The database, sqlite:PATH or postgres://USER@HOST/DATABASE (${env}; default ${default})."`
	Keyset   string      `env:"PROVIDERD_KEYSET" type:"path" placeholder:"PATH" help:"The file with the keys of the database (${env}; default keyset.json beside a SQLite database)."`
}

// AfterApply refuses a SQLite database in the place of another file, a PostgreSQL database without a keyset, and a
// password that every user of the machine could read.
func (f DatabaseFlags) AfterApply(command *kong.Context) error {
	if f.KeysetPath() == "" {
		return errors.New("--keyset: a PostgreSQL database needs a keyset file, the same on each replica; " +
			"\"providerd key create --keyset PATH\" makes one")
	}
	if err := f.Database.CheckHidden("database", command.Args); err != nil {
		return err
	}
	return CheckPlaces(f.Database, f.Keyset, "")
}

// KeysetPath is where the keyset of the database is.
func (f DatabaseFlags) KeysetPath() string { return cmp.Or(f.Keyset, f.Database.DefaultKeyset()) }

// Location is the place of a database: a file of SQLite, or a database on a server of PostgreSQL.
type Location interface {
	// Create opens the database, or makes it, and brings it to the version of this program.
	Create(ctx context.Context, logger *slog.Logger) (database.Movable, error)
	// CreateAlone is create that refuses any database with tables of other programs.
	CreateAlone(ctx context.Context, logger *slog.Logger) (database.Movable, error)
	// Open opens the database as it is.
	Open(ctx context.Context, logger *slog.Logger) (database.Movable, error)
	// Look opens the database to be read alone, whatever is wrong with it.
	Look(ctx context.Context) (database.View, error)
	// Migrate brings the database to a level of the schema, and returns the level that it had.
	Migrate(ctx context.Context, logger *slog.Logger, level int64) (before int64, err error)
	// Path is that of the database's file, and folder the one that it is in; "" for a database on a server.
	Path() string
	Folder() string
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
func (u DatabaseURL) CheckHidden(flag string, arguments []string) error {
	isArgument := func(argument string) bool { return strings.Contains(argument, u.Text) }
	if !u.hasPassword() || !slices.ContainsFunc(arguments, isArgument) {
		return nil
	}
	return fmt.Errorf("--%s: a password in an argument is in the list of processes; put the URL into PROVIDERD_%s, "+
		"or the password into a file that PGPASSFILE names", flag, strings.ToUpper(flag))
}

// KeepHeapSmall is for a command that reads and prints what it never needs again.
func KeepHeapSmall() {
	const percent = 50
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// WithStore opens the database as it is, for a command that works on it.
func (f DatabaseFlags) WithStore(ctx context.Context, work func(database *store.Store) error) (err error) {
	KeepHeapSmall()
	db, err := f.Database.Open(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	opened, err := store.Open(ctx, db, f.KeysetPath())
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := opened.Close(); err == nil {
			err = closeErr
		}
	}()
	return work(opened)
}
