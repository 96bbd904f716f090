package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
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

// AfterApply refuses a PostgreSQL database without a keyset, and a password that every user of the machine could read.
func (f databaseFlag) AfterApply(command *kong.Context) error {
	if !f.Database.isPostgres {
		return nil
	}
	if f.Keyset == "" {
		return errors.New("--keyset: a PostgreSQL database needs a keyset file, the same on each replica; " +
			"\"providerd key create --keyset PATH\" makes one")
	}
	isArgument := func(argument string) bool { return strings.Contains(argument, f.Database.text) }
	if f.Database.postgres.HasPassword() && slices.ContainsFunc(command.Args, isArgument) {
		return errors.New("--database: a password in an argument is in the list of processes; put the URL into " +
			"PROVIDERD_DATABASE, or the password into a file that PGPASSFILE names")
	}
	return nil
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
	return nil
}

// createStore opens the database, or makes it, and brings it to the version of this program. It returns the folder that
// a SQLite database is in, too.
func (f databaseFlag) createStore(ctx context.Context, logger *slog.Logger) (*store.Store, string, error) {
	if f.Database.isPostgres {
		db, err := postgres.Create(ctx, f.Database.postgres, logger)
		if err != nil {
			return nil, "", err
		}
		opened, err := store.Create(ctx, db, f.Keyset)
		return opened, "", err
	}
	db, err := sqlite.Create(ctx, f.Database.path, logger)
	if err != nil {
		return nil, "", err
	}
	opened, err := store.Create(ctx, db, f.keysetPath(db.Folder()))
	return opened, db.Folder(), err
}

// open opens the database as it is. It returns the path of the keyset, too.
func (f databaseFlag) open(ctx context.Context) (db database.Database, keyset string, err error) {
	logger := slog.New(slog.DiscardHandler)
	if f.Database.isPostgres {
		db, err = postgres.Open(ctx, f.Database.postgres, logger)
		return db, f.Keyset, err
	}
	kept, err := sqlite.Open(ctx, f.Database.path, logger)
	if err != nil {
		return nil, "", err
	}
	return kept, f.keysetPath(kept.Folder()), nil
}

func (f databaseFlag) keysetPath(folder string) string {
	return cmp.Or(f.Keyset, filepath.Join(folder, "keyset.json"))
}

// withStore opens the database as it is, for a command that works on it.
func (f databaseFlag) withStore(ctx context.Context, work func(database *store.Store) error) (err error) {
	db, keyset, err := f.open(ctx)
	if err != nil {
		return err
	}
	opened, err := store.Open(ctx, db, keyset)
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
