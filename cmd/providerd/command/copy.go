package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/files"
)

type copyCommand struct {
	From   console.DatabaseURL `required:"" env:"PROVIDERD_FROM" placeholder:"URL" help:"The database to copy: sqlite:PATH or postgres://USER@HOST/DATABASE (${env})."`
	To     console.DatabaseURL `required:"" env:"PROVIDERD_TO" placeholder:"URL" help:"The database to copy to, which must be empty; a missing SQLite file is created (${env})."`
	Keyset string              `env:"PROVIDERD_KEYSET" type:"path" placeholder:"PATH" help:"Keyset file of both databases (${env}; default keyset.json next to the SQLite database to copy)."`
}

// Help is the long help text.
func (copyCommand) Help() string {
	return "Copies providers, applications, tokens and events with their pks, ids, idempotency keys and times. " +
		"Secrets are copied encrypted: both databases use the same keyset, which is not copied. A server can keep using " +
		"the database while it is copied, but records that it creates after the copy begins are not copied; to move a " +
		"database, stop the server first. If the copy is interrupted, nothing is stored, and the command can be run " +
		"again. At the end, both databases are compared, and the number of rows and the SHA-256 of each table are " +
		"printed."
}

// AfterApply makes the checks of console.DatabaseFlags for both databases.
func (c *copyCommand) AfterApply(command *kong.Context) error {
	if c.Keyset == "" && (c.From.DefaultKeyset() == "" || c.To.DefaultKeyset() == "") {
		return errors.New("--keyset is required with a PostgreSQL database; pass the keyset file of the database to copy")
	}
	if err := errors.Join(c.From.CheckPassword("from", command.Args), c.To.CheckPassword("to", command.Args)); err != nil {
		return err
	}
	if err := console.CheckDistinctPaths(c.From, c.Keyset, ""); err != nil {
		return err
	}
	return console.CheckDistinctPaths(c.To, c.keysetPath(), "")
}

// keysetPath returns the path of the keyset of both databases.
func (c *copyCommand) keysetPath() string { return cmp.Or(c.Keyset, c.From.DefaultKeyset()) }

// Run copies until everything is copied or a signal arrives.
func (c *copyCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) (err error) {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	// A process that closes a second handle of a SQLite file loses its locks.
	if path := c.From.Path; path != "" && files.Resolve(path) == files.Resolve(c.To.Path) {
		return errors.New("--from and --to are the same file; pass a new file or an empty database with --to")
	}
	from, err := c.From.Open(ctx, slog.New(slog.DiscardHandler))
	if errors.Is(err, database.ErrNoDatabase) {
		// Not wrapped, because console.Explain would suggest another flag.
		return fmt.Errorf("--from: %s; pass the database to copy", err.Error())
	}
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := c.To.Create(ctx, slog.New(slog.DiscardHandler), true)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	keyset, copied, compared := c.keysetPath(), messages.Progress("rows copied"), messages.Progress("rows compared")
	contents, err := store.Copy(ctx, from, to, keyset, func(step store.CopyStep, done, total int64) {
		map[store.CopyStep]*console.Progress{store.StepCopy: copied, store.StepCompare: compared}[step].Update(done, total)
	})
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted; nothing was stored")
		}
		return err
	}
	copied.Report()
	compared.Report()
	table := console.NewTable(out, "TABLE", "ROWS", "SHA-256")
	for _, content := range contents {
		table.Row(content.Table, fmt.Sprint(content.Rows), content.Digest)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if place := c.To.DefaultKeyset(); place != "" && files.Resolve(keyset) != files.Resolve(place) {
		messages.Note("the keyset of the copy is %s; copy it to %s, or pass it with --keyset", keyset, place)
	}
	return nil
}
