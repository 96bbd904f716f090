package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
)

type backupCommand struct {
	flags.DatabaseFlags
	File  flags.FilePath `arg:"" help:"The file to write, which must not be there yet; with --every, the folder to write files into."`
	Every flags.Duration `and:"schedule" placeholder:"TIME" help:"Go on, and make a backup each time that so long has gone by, such as 6h, in a folder."`
	Keep  int            `and:"schedule" placeholder:"N" help:"With --every, the backups to keep: once a new one is verified, the oldest beyond them are removed."`
}

// Help is the long help text.
func (backupCommand) Help() string {
	return "Writes a SQLite database as it is at one moment to a file, readable by its owner alone, while a server goes " +
		"on over it. The file gets its name once it is on disk and verified: its pages and indexes are in order, it has as " +
		"many rows as the database, and each of its secrets opens with the keyset. Then its name is printed. The keyset is " +
		"never in it: keep a copy of that elsewhere. Where secrets do not open, they are named, and the exit status is 1; " +
		"the file is kept, since it has what the database has.\n\nWith --every, it makes a backup at once, unless the " +
		"newest in the folder is younger than that, and goes on until it is told to stop. The names of files have their " +
		"time in UTC. After a backup that fails, it goes on with the next."
}

// AfterApply refuses what is not backed up by this program, a schedule that keeps nothing, and a file of the database.
func (c *backupCommand) AfterApply(*kong.Context) error {
	if c.Database.Path() == "" {
		return errors.New("a PostgreSQL database is backed up by PostgreSQL's own tools: pg_basebackup with WAL archiving, " +
			"which can go back to any moment, or pg_dump for one dump; keep a copy of the keyset file apart from them, since " +
			"neither has it")
	}
	switch {
	case c.Every == 0:
		return flags.CheckDistinctPaths(c.Database, c.Keyset, string(c.File))
	case time.Duration(c.Every) < time.Second:
		// The names of backups tell seconds apart.
		return errors.New("--every must be at least 1s")
	case c.Keep < 1:
		return errors.New("--keep must be at least 1")
	default:
		return nil
	}
}

// Run makes one backup, or one after the other until it is told to stop.
func (c *backupCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if c.Every > 0 {
		plan, err := newBackupSchedule(string(c.File), c.Database.Path(), c.Every, c.Keep, messages)
		if err != nil {
			return err
		}
		return plan.run(ctx, func(path string) error { return c.write(ctx, out, messages, path) })
	}
	err := c.write(ctx, out, messages, string(c.File))
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted; no backup was made")
	}
	return err
}

// write makes a backup. It returns store.ErrDamaged for one that is there, but has secrets that do not open.
func (c *backupCommand) write(
	ctx context.Context, out *console.Output, messages *console.Messages, path string,
) (err error) {
	db, err := sqlite.OpenForBackup(ctx, c.Database.Path(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	keyset := c.KeysetPath()
	// Without its keyset, a database is not copied for nothing.
	if err := store.CheckKeyset(ctx, db, keyset); err != nil {
		return err
	}
	proof := newBackupProof(keyset, messages)
	err = db.Backup(ctx, path, proof.copied.Update, func(copied database.Readable) error {
		err := proof.check(ctx, copied)
		if damaged, ok := errors.AsType[*store.DamagedSecretsError](err); ok {
			proof.damaged = damaged
			return nil
		}
		return err
	})
	if err != nil {
		proof.copied.Clear()
		return err
	}
	if err := out.FlushLine(path); err != nil {
		return err
	}
	if proof.damaged != nil {
		return fmt.Errorf("%s has what the database has, but %w", path, proof.damaged)
	}
	messages.Note("%s is verified; the keyset is not in it: keep a copy of %s, but not where the backups are", path, keyset)
	return nil
}

// backupProof opens the secrets of what was copied, and shows how far everything is.
type backupProof struct {
	keyset   string
	messages *console.Messages
	copied   *console.Progress
	damaged  *store.DamagedSecretsError
}

func newBackupProof(keyset string, messages *console.Messages) *backupProof {
	return &backupProof{keyset: keyset, messages: messages, copied: messages.Progress("bytes copied")}
}

func (p *backupProof) check(ctx context.Context, copied database.Readable) error {
	p.copied.Finish()
	opened := p.messages.Progress("secrets opened")
	err := store.CheckSecrets(ctx, copied, p.keyset, opened.Update)
	if err == nil {
		opened.Finish()
		return nil
	}
	opened.Clear()
	return err
}
