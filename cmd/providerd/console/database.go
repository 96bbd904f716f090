package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/providerd/store"
	"example.com/providerd/store/seal"
)

// DefaultDatabase is the URL of the database by default.
const DefaultDatabase = "sqlite:data/providerd.db"

// DatabaseFlags are the flags of every command that opens the database.
type DatabaseFlags struct {
	Database DatabaseURL `default:"${database}" env:"PROVIDERD_DATABASE" placeholder:"URL" help:"The database: sqlite:PATH or postgres://USER@HOST/DATABASE (${env}; default ${default})."`
	Keyset   string      `env:"PROVIDERD_KEYSET" type:"path" placeholder:"PATH" help:"Keyset file of the database (${env}; default keyset.json next to a SQLite database)."`
}

// AfterApply refuses a password that other users of the host could read, a PostgreSQL database without a keyset, and
// one path for two files.
func (f DatabaseFlags) AfterApply(command *kong.Context) error {
	if err := f.Database.CheckPassword("database", command.Args); err != nil {
		return err
	}
	if f.KeysetPath() == "" {
		return errors.New("--keyset is required with a PostgreSQL database, and must be the same file on each replica; " +
			"create one with \"providerd key create --keyset PATH\"")
	}
	return CheckDistinctPaths(f.Database, f.Keyset, "")
}

// KeysetPath returns the path of the keyset.
func (f DatabaseFlags) KeysetPath() string { return cmp.Or(f.Keyset, f.Database.DefaultKeyset()) }

// KeepHeapSmall makes the garbage collector run more often, for commands that stream data.
func KeepHeapSmall() {
	const percent = 50
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// WithStore opens the database, without migrating it, and calls work with its store.
func (f DatabaseFlags) WithStore(ctx context.Context, work func(database *store.Store) error) (err error) {
	KeepHeapSmall()
	db, err := f.Database.Open(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return f.NameSource(err)
	}
	opened, err := store.Open(ctx, db, f.KeysetPath())
	if err != nil {
		return f.NameSource(err)
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	return work(opened)
}

// NameSource adds the flag or variable of a database that cannot be reached, or of a keyset that cannot be used.
func (f DatabaseFlags) NameSource(err error) error {
	switch {
	case f.Keyset != "" && (errors.Is(err, seal.ErrNoKeyset) || errors.Is(err, seal.ErrKeysetUnusable)):
		return fmt.Errorf("%s: %w", Source("keyset", f.Keyset), err)
	case f.Database.Path == "" && errors.Is(err, store.ErrUnavailable):
		return fmt.Errorf("%s: %w", Source("database", f.Database.Text), err)
	default:
		return err
	}
}

// Source returns the variable of a flag if that has the value, and else the flag.
func Source(flag, value string) string {
	variable := "PROVIDERD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
	if os.Getenv(variable) == value {
		return variable
	}
	return "--" + flag
}
