package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/serve"
	"example.com/providerd/store/copies"
	"example.com/providerd/store/database"
	"example.com/providerd/store/files"
	"example.com/providerd/store/postgres"
)

// Copy has the flags of "providerd copy".
type Copy struct {
	From   console.DatabaseURL `required:"" env:"PROVIDERD_FROM" placeholder:"URL" help:"The database to copy: sqlite:PATH or postgres://USER@HOST/DATABASE (${env})."`
	To     console.DatabaseURL `required:"" env:"PROVIDERD_TO" placeholder:"URL" help:"The database to copy to, which must be empty; a missing SQLite file is created (${env})."`
	Keyset string              `env:"PROVIDERD_KEYSET" type:"path" placeholder:"PATH" help:"Keyset file of both databases (${env}; default keyset.json next to the database to copy; required if one is PostgreSQL)."`
	Live   bool                `help:"Copy even while a server uses the database; records that it creates after the copy begins are not copied."`
}

// Help is the long help text.
func (Copy) Help() string {
	return "Copies providers, applications, tokens and events with their pks, ids, idempotency keys and times. " +
		"Secrets are copied encrypted: both databases use the same keyset, which is not copied. Stop the server first, " +
		"and never start it again on the database that was copied: both databases would assign the same pks. Without " +
		"--live, nothing is stored if a server uses the database, or if an event is added to it during the copy. A server " +
		"on PostgreSQL is seen only while it has connections. If the copy fails, the command can be run again. At the " +
		"end, both databases are compared, and the number of rows and the SHA-256 of each table are printed."
}

// AfterApply makes the checks of console.DatabaseFlags for both databases.
func (c *Copy) AfterApply(command *kong.Context) error {
	if c.Keyset == "" && (c.From.DefaultKeyset() == "" || c.To.DefaultKeyset() == "") {
		return errors.New("--keyset is required with a PostgreSQL database; pass the keyset file of the database to copy")
	}
	return errors.Join(c.From.CheckPassword("from", command.Args), c.To.CheckPassword("to", command.Args),
		console.CheckDistinctPaths(c.From, c.Keyset, ""), console.CheckDistinctPaths(c.To, c.keysetPath(), ""))
}

func (c *Copy) keysetPath() string { return cmp.Or(c.Keyset, c.From.DefaultKeyset()) }

// Run copies until everything is copied or a signal arrives.
func (c *Copy) Run(ctx context.Context, out *console.Output, messages *console.Messages) (err error) {
	ctx, stop := console.UntilInterrupted(ctx)
	defer stop()
	// A process that closes a second handle of a SQLite file loses its locks.
	if path := c.From.Path; path != "" && files.Resolve(path) == files.Resolve(c.To.Path) {
		return errors.New("--from and --to are the same file; pass a new file or an empty database with --to")
	}
	from, closeSource, err := c.openSource(ctx)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	to, err := c.To.Create(ctx, slog.New(slog.DiscardHandler), true)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	keyset, copied, compared := c.keysetPath(), messages.Progress("rows copied"), messages.Progress("rows compared")
	contents, err := copies.Copy(ctx, from, to, keyset, c.Live, copied.Update, compared.Update)
	if err != nil {
		return explainCopy(ctx, err)
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
	if c.From.Path == "" && !c.Live {
		messages.Note("when the copy began, no server was connected to the database, and no event was added to it since; " +
			"only this was checked, so make sure that no server is running: one without requests has no connection")
	}
	if place := c.To.DefaultKeyset(); place != "" && files.Resolve(keyset) != files.Resolve(place) {
		messages.Note("the keyset of the copy is %s; copy it to %s, or pass it with --keyset", keyset, place)
	}
	return nil
}

// openSource opens the database unless a server is seen to use it. While it is open, no server starts on a SQLite file.
func (c *Copy) openSource(ctx context.Context) (from database.Database, closeAll func() error, err error) {
	from, err = c.From.Open(ctx, slog.New(slog.DiscardHandler))
	if errors.Is(err, database.ErrNoDatabase) {
		// Not wrapped, because console.Explain would suggest another flag.
		return nil, nil, fmt.Errorf("%s; pass the database to copy", err.Error())
	}
	if err != nil {
		return nil, nil, err
	}
	unlock := func() error { return nil }
	shared, isShared := from.(*postgres.Database)
	switch {
	case c.Live:
	case isShared:
		err = shared.CheckUnserved(ctx)
	default:
		unlock, err = serve.LockUnserved(c.From.Path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, from.Close())
	}
	return from, func() error { return errors.Join(from.Close(), unlock()) }, nil
}

// explainCopy adds what the next run does after an error.
func explainCopy(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, copies.ErrNotEmpty):
		return err
	case errors.Is(err, database.ErrOutcomeUnknown):
		return fmt.Errorf("%w; run the command again: if the target has been set up before, the copy is complete", err)
	case ctx.Err() != nil:
		return errors.New("interrupted; nothing was stored, and the next run can use the same target")
	default:
		return fmt.Errorf("nothing was stored, and the next run can use the same target: %w", err)
	}
}
