package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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
	if f.Database.isPostgres && f.Keyset == "" {
		return errors.New("--keyset: a PostgreSQL database needs a keyset file, the same on each replica; " +
			"\"providerd key create --keyset PATH\" makes one")
	}
	if err := f.Database.checkHidden("database", command.Args); err != nil {
		return err
	}
	return checkPlaces(f.Database, f.Keyset, "")
}

// databaseURL is the place of the database.
type databaseURL struct {
	text       string
	isPostgres bool
	postgres   postgres.URL
	// path is that of a SQLite database's file.
	path string
}

// UnmarshalText checks the form of the URL.
func (u *databaseURL) UnmarshalText(text []byte) (err error) {
	u.text, u.isPostgres = string(text), postgres.IsURL(string(text))
	if u.isPostgres {
		u.postgres, err = postgres.ParseURL(u.text)
		return err
	}
	if u.path, err = sqlite.Path(u.text); err != nil {
		return fmt.Errorf("%w, such as sqlite:data/providerd.db, nor does it begin with postgres://", err)
	}
	return sqlite.CheckName(u.path)
}

// checkHidden refuses a password that is in an argument, the value of a flag.
func (u databaseURL) checkHidden(flag string, arguments []string) error {
	isArgument := func(argument string) bool { return strings.Contains(argument, u.text) }
	if !u.isPostgres || !u.postgres.HasPassword() || !slices.ContainsFunc(arguments, isArgument) {
		return nil
	}
	return fmt.Errorf("--%s: a password in an argument is in the list of processes; put the URL into PROVIDERD_%s, "+
		"or the password into a file that PGPASSFILE names", flag, strings.ToUpper(flag))
}

// create opens the database, or makes it, and brings it to the version of this program. The folder is that of a SQLite
// database.
func (u databaseURL) create(
	ctx context.Context, logger *slog.Logger,
) (db database.Movable, folder string, err error) {
	if u.isPostgres {
		db, err = postgres.Create(ctx, u.postgres, logger)
		return db, "", err
	}
	kept, err := sqlite.Create(ctx, u.path, logger)
	if err != nil {
		return nil, "", err
	}
	return kept, kept.Folder(), nil
}

// createAlone is create that refuses any database with tables of other programs, as SQLite always does.
func (u databaseURL) createAlone(
	ctx context.Context, logger *slog.Logger,
) (db database.Movable, folder string, err error) {
	if !u.isPostgres {
		return u.create(ctx, logger)
	}
	db, err = postgres.CreateAlone(ctx, u.postgres, logger)
	return db, "", err
}

// open opens the database as it is. The folder is that of a SQLite database.
func (u databaseURL) open(ctx context.Context) (db database.Movable, folder string, err error) {
	logger := slog.New(slog.DiscardHandler)
	if u.isPostgres {
		db, err = postgres.Open(ctx, u.postgres, logger)
		return db, "", err
	}
	kept, err := sqlite.Open(ctx, u.path, logger)
	if err != nil {
		return nil, "", err
	}
	return kept, kept.Folder(), nil
}

// look opens the database to be read alone, whatever is wrong with it.
func (u databaseURL) look(ctx context.Context) (database.View, error) {
	if u.isPostgres {
		return postgres.Look(ctx, u.postgres)
	}
	return sqlite.Look(ctx, u.path)
}

// keysetPath is where the keyset is that a flag names, or else that of a SQLite database in a folder.
func keysetPath(flag, folder string) string {
	return cmp.Or(flag, filepath.Join(folder, "keyset.json"))
}

// commandGCPercent keeps the heap of a command small, which reads and prints what it never needs again.
const commandGCPercent = 50

// withStore opens the database as it is, for a command that works on it.
func (f databaseFlag) withStore(ctx context.Context, work func(database *store.Store) error) (err error) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(commandGCPercent)
	}
	db, folder, err := f.Database.open(ctx)
	if err != nil {
		return err
	}
	opened, err := store.Open(ctx, db, keysetPath(f.Keyset, folder))
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
