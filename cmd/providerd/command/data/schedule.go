package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
	"example.com/providerd/store/files"
)

const timeInName = "20060102T150405Z"

// repeat writes backups to a directory until ctx ends, and removes old ones. The directory must exist: if a disk is not
// mounted, nothing must be written below its mount point.
func (b backups) repeat(ctx context.Context) error {
	names, err := b.names()
	if err != nil {
		return fmt.Errorf("check backup directory: %w", err)
	}
	// The time of the newest backup counts, so that a program that restarts often does not push out the old ones.
	due := time.Now()
	if len(names) > 0 {
		if newest, _ := b.timeOf(names[len(names)-1]); newest.Before(due) {
			due = newest.Add(time.Duration(b.Every))
		}
	}
	for {
		if wait := time.Until(due); wait > 0 {
			b.messages.Note("the next backup is due at %s", console.Timestamp(due))
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return nil
			}
		}
		due = time.Now().Add(time.Duration(b.Every))
		err := b.round(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // An interruption is not a failure.
		}
		if err != nil {
			b.messages.Error(fmt.Errorf("backup failed: %w", console.Explain(err)))
		}
	}
}

// round writes a backup and, once it is verified, removes the oldest, but not the new one if the clock was set back.
func (b backups) round(ctx context.Context) error {
	newest := b.prefix() + time.Now().UTC().Format(timeInName) + ".db"
	err := b.write(ctx, filepath.Join(b.File, newest))
	if errors.Is(err, store.ErrDamaged) {
		return fmt.Errorf("%w; all older backups are kept", err)
	}
	if err != nil {
		return err
	}
	names, err := b.names()
	if err != nil {
		return fmt.Errorf("list backups: %w", err)
	}
	older := slices.DeleteFunc(names, func(name string) bool { return name == newest })
	for _, name := range older[:max(0, len(older)+1-int(b.Keep))] {
		if err := os.Remove(filepath.Join(b.File, name)); err != nil {
			return fmt.Errorf("remove old backup: %w", err)
		}
	}
	return nil
}

// prefix begins the names of backups of the database.
func (b backups) prefix() string {
	name := filepath.Base(b.Database.Path)
	return strings.TrimSuffix(name, filepath.Ext(name)) + "-"
}

// names returns the names of the backups, oldest first.
func (b backups) names() (names []string, err error) {
	entries, err := os.ReadDir(b.File)
	for _, entry := range entries {
		if _, ok := b.timeOf(entry.Name()); ok && entry.Type().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	return names, err //nolint:wrapcheck // The caller wraps it.
}

// timeOf parses the time in the name of a backup, and reports whether it is one.
func (b backups) timeOf(name string) (time.Time, bool) {
	text, hasPrefix := strings.CutPrefix(name, b.prefix())
	at, err := time.Parse(timeInName+".db", text)
	return at, hasPrefix && err == nil
}

// writeMetrics writes the outcome for node_exporter's textfile collector. After a failure, the last success stays.
func writeMetrics(path, backup string, begun time.Time, failure error) error {
	gauge := func(name, help string, value any) string {
		name = "providerd_backup_" + name
		return fmt.Sprintf("# HELP %s %s\n# TYPE %s gauge\n%s %v\n", name, help, name, name, value)
	}
	outcome := func(success int) string { return gauge("success", "1 if the last backup succeeded, else 0.", success) }
	text, err := files.ReadSmall(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read metrics of backup: %w", err)
	case len(text) > 0 && !bytes.HasPrefix(text, []byte("# HELP providerd_backup_")):
		return fmt.Errorf("%s does not contain metrics of backups; use another file", path)
	case failure != nil && len(text) > 0:
		text = bytes.Replace(text, []byte("providerd_backup_success 1\n"), []byte("providerd_backup_success 0\n"), 1)
	case failure != nil:
		text = []byte(outcome(0))
	default:
		written, err := os.Stat(backup)
		if err != nil {
			return fmt.Errorf("measure backup: %w", err)
		}
		text = []byte(outcome(1) +
			gauge("last_success_timestamp_seconds", "When the last successful backup finished.", time.Now().Unix()) +
			gauge("size_bytes", "Size of the last successful backup.", written.Size()) +
			gauge("duration_seconds", "How long the last successful backup took.", time.Since(begun).Seconds()))
	}
	if err := renameio.WriteFile(path, text, 0o644, renameio.IgnoreUmask()); err != nil {
		return fmt.Errorf("write metrics of backup: %w", err)
	}
	return nil
}
