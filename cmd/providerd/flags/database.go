// Package flags has the values that flags and variables of the environment take, each checked as it is read: the
// database and its keyset, addresses, lengths of time, names, paths, certificates and files to write.
//
// Start with DatabaseFlags, which most commands have.
package flags

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"example.com/providerd/store"
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
	if err := f.Database.CheckPassword("database", command.Args); err != nil {
		return err
	}
	return CheckDistinctPaths(f.Database, f.Keyset, "")
}

// KeysetPath is where the keyset of the database is.
func (f DatabaseFlags) KeysetPath() string { return cmp.Or(f.Keyset, f.Database.DefaultKeyset()) }

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
