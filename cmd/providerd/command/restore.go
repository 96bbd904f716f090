package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
)

type restoreCommand struct {
	flags.DatabaseFlags
	File    flags.FilePath `arg:"" help:"The backup."`
	Replace bool           `help:"Where there is a database, keep it under a name with the time, and put the backup in its place."`
	Damaged bool           `help:"Restore also where some secrets do not open with the keyset. They are named."`
}

// Help is the long help text.
func (restoreCommand) Help() string {
	return "Puts a copy of a backup in the place of a SQLite database, once it is verified: it is a database of " +
		"providerd that this version knows, its pages and indexes are in order, and each secret opens with the " +
		"keyset, which must be there. Stop the server first: nothing is restored while a program has the database " +
		"open, or files of one that was killed are beside it. What was stored after the backup is not in it, and " +
		"the pks of that are given again. What root restores belongs to the owner of the database that it replaces, or " +
		"else of the folder."
}

// AfterApply refuses what only a SQLite database is restored by.
func (c *restoreCommand) AfterApply(*kong.Context) error {
	if c.Database.Path() == "" {
		return errors.New("a PostgreSQL database is restored by PostgreSQL's own tools: what pg_basebackup wrote by a " +
			"start over it, with the archived WAL, and what pg_dump wrote by pg_restore; the keyset file comes from a copy of " +
			"its own")
	}
	return nil
}

// Run restores the backup.
func (c *restoreCommand) Run(ctx context.Context, messages *console.Messages) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	proof := newBackupProof(c.KeysetPath(), messages)
	kept, err := sqlite.Restoration{
		Backup: string(c.File), Database: c.Database.Path(), Replace: c.Replace, Progress: proof.copied.Update,
		Check: func(copied database.Readable) error {
			err := proof.check(ctx, copied)
			if damaged, ok := errors.AsType[*store.DamagedSecretsError](err); ok {
				return c.judge(damaged, messages)
			}
			return err
		},
	}.Run(ctx)
	if err != nil {
		proof.copied.Clear()
		if ctx.Err() != nil {
			return errors.New("interrupted; nothing was restored")
		}
		return c.explain(err)
	}
	if kept != "" {
		messages.Note("the database that was there is kept as %s", kept)
	}
	messages.Note("restored %s as %s", c.File, c.Database.Path())
	return nil
}

// explain says of a file that is no backup what to do. Its error is not wrapped, since console.Explain would take it
// for that of the database.
func (c *restoreCommand) explain(err error) error {
	if !errors.Is(err, database.ErrCorrupt) && !errors.Is(err, database.ErrForeign) {
		return err
	}
	return fmt.Errorf("%s is no backup, or a damaged one; name a file that \"providerd backup\" made: %s", c.File,
		err.Error())
}

func (c *restoreCommand) judge(damaged *store.DamagedSecretsError, messages *console.Messages) error {
	if !c.Damaged {
		return fmt.Errorf("%s: %w; --damaged restores it nevertheless", c.File, damaged)
	}
	messages.Warn("%v", damaged)
	return nil
}
