// Package data implements the commands for a whole database: "providerd migrate", "backup", "restore" and "copy".
//
// Start with the Run method of Backup, Restore, Copy or Migrate.
package data

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store/audit"
	"example.com/providerd/store/database"
	"example.com/providerd/store/keyset"
	"example.com/providerd/store/sqlite"
)

// Backup has the flags of "providerd backup".
type Backup struct {
	console.DatabaseFlags
	File        string           `arg:"" type:"path" help:"The file to write, which must not exist; with --every, the directory for the files."`
	Every       console.Duration `and:"schedule" placeholder:"TIME" help:"Keep running, and write a backup to a directory at this interval, such as 6h."`
	MetricsFile string           `type:"path" placeholder:"FILE" help:"File for the outcome of each backup, for node_exporter's textfile collector; its name must end in .prom."`
	Keep        console.Positive `and:"schedule" placeholder:"N" help:"With --every, the number of backups to keep; older ones are removed once a new one is verified."`
}

// Help is the long help text.
func (Backup) Help() string {
	return "Writes a snapshot of a SQLite database to a file that only its owner can read, while a server keeps " +
		"running. The file appears under its name only once it is on disk and verified: its pages and indexes are intact, " +
		"it has as many rows as the database, and each provider can be read, with its secret. Then the name is printed. " +
		"The backup does not contain the keyset: keep a copy of it elsewhere. If providers cannot be read, they are " +
		"reported and the exit status is 1; the file is kept, because it is a complete copy of the database.\n\nWith " +
		"--every, the first backup is written immediately, unless the newest in the directory is recent enough. File " +
		"names contain the time in UTC. If a backup fails, the next one is still attempted. Stop the command with a " +
		"signal."
}

// AfterApply refuses a PostgreSQL database, an invalid schedule, and a path that the database or its keyset uses.
func (c *Backup) AfterApply(*kong.Context) error {
	switch err := console.CheckDistinctPaths(c.Database, c.Keyset, c.MetricsFile); {
	case c.Database.Path == "":
		return errors.New("use PostgreSQL's own tools to back up a PostgreSQL database: pg_basebackup with WAL archiving " +
			"for point-in-time recovery, or pg_dump for a single dump; neither contains the keyset file, so keep a copy of " +
			"that elsewhere")
	case c.MetricsFile != "" && filepath.Ext(c.MetricsFile) != ".prom":
		return errors.New("--metrics-file must end in .prom")
	case err != nil:
		return err
	case c.Every == 0 && c.Keep == 0:
		return c.checkFile()
	case time.Duration(c.Every) < time.Second:
		// The names of backups contain seconds.
		return errors.New("--every must be at least 1s")
	default:
		return nil
	}
}

// checkFile refuses what is meant as a URL, a command or a directory.
func (c *Backup) checkFile() error {
	if first, _, _ := strings.Cut(c.File, "/"); first != c.File && strings.HasSuffix(first, ":") {
		return errors.New("write the backup to a path of this machine, not to a URL, and copy the file from there")
	}
	if slices.Contains([]string{"create", "list", "restore", "status", "verify"}, c.File) {
		return fmt.Errorf("backup has no command %s; \"restore\" is a command of its own, and backups are files: for one of "+
			"this name, write %[1]s.db", c.File)
	}
	if info, err := os.Stat(c.File); err == nil && info.IsDir() || strings.HasSuffix(c.File, "/") {
		return errors.New("FILE is a directory; add the name of the file, or --every to write files to it")
	}
	return console.CheckDistinctPaths(c.Database, c.Keyset, c.File)
}

// Run writes one backup, or one per interval until a signal arrives.
func (c *Backup) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	ctx, stop := console.UntilInterrupted(ctx)
	defer stop()
	b := backups{c, out, messages}
	if c.Every > 0 {
		return b.repeat(ctx)
	}
	err := b.write(ctx, c.File)
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted; no backup was written")
	}
	return err
}

type backups struct {
	*Backup
	out      *console.Output
	messages *console.Messages
}

// write writes a backup, and its outcome to the metrics file. It returns the error of backUp.
func (b backups) write(ctx context.Context, path string) error {
	begun := time.Now()
	err := b.backUp(ctx, path)
	if b.MetricsFile == "" || ctx.Err() != nil {
		return err
	}
	failure := writeMetrics(b.MetricsFile, path, begun, err)
	if failure != nil && b.Every > 0 {
		// The backup is complete, so older ones can be removed.
		b.messages.Error(failure)
		return err
	}
	return errors.Join(err, failure)
}

// backUp writes a backup. It returns store.ErrDamaged if the backup was written but some providers cannot be read.
func (b backups) backUp(ctx context.Context, path string) (err error) {
	db, err := sqlite.OpenForBackup(ctx, b.Database.Path, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	keysetPath := b.KeysetPath()
	// Fail early: without its keyset, the copy could not be verified.
	if _, err := keyset.Open(ctx, db, keysetPath); err != nil {
		return err
	}
	written := b.messages.Progress("bytes copied")
	var damaged *audit.DamagedError
	err = db.Backup(ctx, path, written.Update, func(copied database.Readable) error {
		written.Report()
		if err := checkProviders(ctx, copied, keysetPath, b.messages); !errors.As(err, &damaged) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	_ = b.out.Line(path)
	if err := b.out.Flush(); err != nil {
		return err
	}
	if damaged != nil {
		return fmt.Errorf("%s is a complete backup, but %w", path, damaged)
	}
	b.messages.Note("verified %s; it does not contain the keyset: keep a copy of %s, but not next to the backups",
		path, keysetPath)
	return nil
}

// checkProviders reads the providers of a copy, with their secrets.
func checkProviders(ctx context.Context, copied database.Readable, keyset string, messages *console.Messages) error {
	read := messages.Progress("providers read")
	_, err := audit.CheckProviders(ctx, copied, keyset, read.Update)
	if err == nil {
		read.Report()
	}
	return err
}
