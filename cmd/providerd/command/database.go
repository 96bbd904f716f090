package command

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

// databaseFlag is the flag of every command that works on the database.
type databaseFlag struct {
	Database databaseURL `default:"sqlite:data/providerd.db" env:"PROVIDERD_DATABASE" placeholder:"URL" help:"The database, sqlite:PATH or postgres://USER@HOST/DATABASE (${env}; default ${default})."`
	Keyset   string      `env:"PROVIDERD_KEYSET" type:"path" placeholder:"PATH" help:"The file with the keys of the database (${env}; default keyset.json beside a SQLite database)."`
}

// AfterApply refuses a SQLite database in the place of another file, a PostgreSQL database without a keyset, and a
// password that every user of the machine could read.
func (f databaseFlag) AfterApply(command *kong.Context) error {
	if f.keysetPath() == "" {
		return errors.New("--keyset: a PostgreSQL database needs a keyset file, the same on each replica; " +
			"\"providerd key create --keyset PATH\" makes one")
	}
	if err := f.Database.checkHidden("database", command.Args); err != nil {
		return err
	}
	return checkPlaces(f.Database, f.Keyset, "")
}

// keysetPath is where the keyset of the database is.
func (f databaseFlag) keysetPath() string { return cmp.Or(f.Keyset, f.Database.defaultKeyset()) }

// location is the place of a database: a file of SQLite, or a database on a server of PostgreSQL.
type location interface {
	// create opens the database, or makes it, and brings it to the version of this program.
	create(ctx context.Context, logger *slog.Logger) (database.Movable, error)
	// createAlone is create that refuses any database with tables of other programs.
	createAlone(ctx context.Context, logger *slog.Logger) (database.Movable, error)
	// open opens the database as it is.
	open(ctx context.Context, logger *slog.Logger) (database.Movable, error)
	// look opens the database to be read alone, whatever is wrong with it.
	look(ctx context.Context) (database.View, error)
	// migrate brings the database to a level of the schema, and returns the level that it had.
	migrate(ctx context.Context, logger *slog.Logger, level int64) (before int64, err error)
	// path is that of the database's file, and folder the one that it is in; "" for a database on a server.
	path() string
	folder() string
	// defaultKeyset is where the keyset is that no flag names; "" where a flag must name it.
	defaultKeyset() string
	// files are those that nothing else may be written to.
	files() []place
	// hasPassword reports whether a password is in the URL.
	hasPassword() bool
}

// databaseURL is a location as a flag names it.
type databaseURL struct {
	text string
	location
}

// UnmarshalText checks the form of the URL.
func (u *databaseURL) UnmarshalText(text []byte) error {
	u.text = string(text)
	if postgres.IsURL(u.text) {
		url, err := postgres.ParseURL(u.text)
		u.location = postgresURL{url}
		return err
	}
	path, err := sqlite.Path(u.text)
	u.location = sqliteFile(path)
	if err != nil {
		return fmt.Errorf("%w, such as sqlite:data/providerd.db, nor does it begin with postgres://", err)
	}
	return sqlite.CheckName(path)
}

// checkHidden refuses a password that is in an argument, the value of a flag.
func (u databaseURL) checkHidden(flag string, arguments []string) error {
	isArgument := func(argument string) bool { return strings.Contains(argument, u.text) }
	if !u.hasPassword() || !slices.ContainsFunc(arguments, isArgument) {
		return nil
	}
	return fmt.Errorf("--%s: a password in an argument is in the list of processes; put the URL into PROVIDERD_%s, "+
		"or the password into a file that PGPASSFILE names", flag, strings.ToUpper(flag))
}

// keepHeapSmall is for a command that reads and prints what it never needs again.
func keepHeapSmall() {
	const percent = 50
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// withStore opens the database as it is, for a command that works on it.
func (f databaseFlag) withStore(ctx context.Context, work func(database *store.Store) error) (err error) {
	keepHeapSmall()
	db, err := f.Database.open(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	opened, err := store.Open(ctx, db, f.keysetPath())
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
