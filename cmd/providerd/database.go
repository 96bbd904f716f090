package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"example.com/providerd/store"
	"example.com/providerd/store/sqlite"
)

// databaseFlag is the flag of every command that works on the database.
type databaseFlag struct {
	Database databaseURL `default:"sqlite:data/providerd.db" env:"PROVIDERD_DATABASE" placeholder:"URL" help:"The database, sqlite:PATH (${env}; default ${default})."`
	Keyset   string      `env:"PROVIDERD_KEYSET" type:"path" placeholder:"PATH" help:"The file with the keys of the database (${env}; default keyset.json beside the database)."`
}

// databaseURL is the place of the database.
type databaseURL struct {
	// path is that of the database's file.
	path string
}

// UnmarshalText checks the form of the URL.
func (u *databaseURL) UnmarshalText(text []byte) error {
	path, err := sqlite.Path(string(text))
	if err != nil {
		return fmt.Errorf("%w, such as sqlite:data/providerd.db", err)
	}
	u.path = path
	return nil
}

// createStore opens the database, or makes it, and brings it to the version of this program. It returns the folder that
// the database is in, too.
func (f databaseFlag) createStore(ctx context.Context, logger *slog.Logger) (*store.Store, string, error) {
	database, err := sqlite.Create(ctx, f.Database.path, logger)
	if err != nil {
		return nil, "", err
	}
	opened, err := store.Create(ctx, database, f.keysetPath(database))
	return opened, database.Folder(), err
}

func (f databaseFlag) keysetPath(database *sqlite.Database) string {
	return cmp.Or(f.Keyset, filepath.Join(database.Folder(), "keyset.json"))
}

// withStore opens the database as it is, for a command that works on it.
func (f databaseFlag) withStore(ctx context.Context, work func(database *store.Store) error) (err error) {
	database, err := sqlite.Open(ctx, f.Database.path, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	opened, err := store.Open(ctx, database, f.keysetPath(database))
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
