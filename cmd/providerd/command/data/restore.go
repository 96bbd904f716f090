package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/event"
	"example.com/providerd/store/sqlite"
)

// Restore has the flags of "providerd restore".
type Restore struct {
	console.DatabaseFlags
	File    string `arg:"" type:"path" help:"The backup."`
	Replace bool   `help:"Replace an existing database, which is kept under a name that contains the time."`
}

// Help is the long help text.
func (Restore) Help() string {
	return "Copies a backup to the path of a SQLite database once the backup is verified: it has the schema of this " +
		"version of providerd, its pages and indexes are intact, and each provider can be read, with its secret. The " +
		"keyset must exist. Stop the server first: nothing is restored while a program has the database open, or while " +
		"files left by a killed server are next to it. Records stored after the backup are lost, and their pks are " +
		"assigned again. If root runs the command, the file belongs to the owner of the database that it replaces, or of " +
		"the directory."
}

// AfterApply refuses a PostgreSQL database, and the database as its own backup.
func (c *Restore) AfterApply(*kong.Context) error {
	if c.Database.Path == "" {
		return errors.New("use PostgreSQL's own tools to restore a PostgreSQL database: start a server on the " +
			"pg_basebackup files and the archived WAL, or run pg_restore on the pg_dump file; restore the keyset file from " +
			"its own copy")
	}
	return console.CheckDistinctPaths(c.Database, c.Keyset, c.File)
}

// Run restores the backup.
func (c *Restore) Run(ctx context.Context, messages *console.Messages) error {
	ctx, stop := console.UntilInterrupted(ctx)
	defer stop()
	copied := messages.Progress("bytes copied")
	kept, err := sqlite.Restoration{
		Backup: c.File, Database: c.Database.Path, Replace: c.Replace, Progress: copied.Update,
		Check: func(restored database.Readable) error {
			copied.Report()
			err := checkProviders(ctx, restored, c.KeysetPath(), messages)
			if errors.Is(err, store.ErrDamaged) {
				// It is not wrapped, because console.Explain would add another remedy.
				err = fmt.Errorf("%s: %s; use an earlier backup", c.File, err.Error())
			}
			return err
		},
		Restored: event.AddRestored,
	}.Run(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.New("interrupted; nothing was restored")
	case err != nil:
		return c.explain(err)
	case kept != "":
		messages.Note("kept the previous database as %s", kept)
	}
	messages.Note("restored %s to %s", c.File, c.Database.Path)
	return nil
}

// explain adds what to do. It does not wrap the error, because console.Explain would take it for one of the database.
func (c *Restore) explain(err error) error {
	if errors.Is(err, database.ErrOlder) {
		return fmt.Errorf("%s; restore it with the version of providerd that wrote it, then migrate it", err.Error())
	}
	if !errors.Is(err, database.ErrCorrupt) && !errors.Is(err, database.ErrForeign) {
		return err
	}
	_, foreign, _ := strings.Cut(err.Error(), database.ErrForeign.Error()+": ")
	text := cmp.Or(foreign, c.File+" is not an intact backup: "+err.Error())
	return errors.New(text + `; pass a file that "providerd backup" wrote`)
}
