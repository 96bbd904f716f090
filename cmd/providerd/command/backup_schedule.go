package command

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

// timeInName is the format of the time in the name of a backup.
const timeInName = "20060102T150405Z"

// backupSchedule writes backups to a directory and removes old ones.
type backupSchedule struct {
	*backupCommand
	messages *console.Messages
	write    func(path string) error
}

// run writes backups until ctx ends. The directory must exist: if a disk is not mounted, nothing must be written below
// its mount point.
func (s backupSchedule) run(ctx context.Context) error {
	names, err := s.backups()
	if err != nil {
		return fmt.Errorf("check backup directory: %w", err)
	}
	// The time of the newest backup counts, so that a program that restarts often does not push out the old ones.
	due := time.Now()
	if len(names) > 0 {
		if newest, _ := s.timeOf(names[len(names)-1]); newest.Before(due) {
			due = newest.Add(time.Duration(s.Every))
		}
	}
	for {
		if wait := time.Until(due); wait > 0 {
			s.messages.Note("the next backup is due at %s", console.Timestamp(due))
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return nil
			}
		}
		due = time.Now().Add(time.Duration(s.Every))
		err := s.round()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // An interruption is not a failure.
		}
		if err != nil {
			s.messages.Error(fmt.Errorf("backup failed: %w", console.Explain(err)))
		}
	}
}

// round writes a backup and, once it is verified, removes the oldest. It keeps the new one even if the clock was set
// back.
func (s backupSchedule) round() error {
	newest := s.prefix() + time.Now().UTC().Format(timeInName) + ".db"
	err := s.write(filepath.Join(s.File, newest))
	if errors.Is(err, store.ErrDamaged) {
		return fmt.Errorf("%w; all older backups are kept", err)
	}
	if err != nil {
		return err
	}
	names, err := s.backups()
	if err != nil {
		return fmt.Errorf("list backups: %w", err)
	}
	older := slices.DeleteFunc(names, func(name string) bool { return name == newest })
	for _, name := range older[:max(0, len(older)+1-int(s.Keep))] {
		if err := os.Remove(filepath.Join(s.File, name)); err != nil {
			return fmt.Errorf("remove old backup: %w", err)
		}
	}
	return nil
}

// prefix begins the names of backups of the database.
func (s backupSchedule) prefix() string {
	name := filepath.Base(s.Database.Path)
	return strings.TrimSuffix(name, filepath.Ext(name)) + "-"
}

// backups returns the names of the backups, oldest first.
func (s backupSchedule) backups() (names []string, err error) {
	entries, err := os.ReadDir(s.File)
	for _, entry := range entries {
		if _, ok := s.timeOf(entry.Name()); ok && entry.Type().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	return names, err //nolint:wrapcheck // The caller wraps it.
}

// timeOf parses the time in the name of a backup, and reports whether it is one.
func (s backupSchedule) timeOf(name string) (time.Time, bool) {
	text, hasPrefix := strings.CutPrefix(name, s.prefix())
	at, err := time.Parse(timeInName+".db", text)
	return at, hasPrefix && err == nil
}

// writeBackupMetrics writes the outcome of a backup for the textfile collector of node_exporter. After a failure, the
// figures of the last success stay.
func writeBackupMetrics(path, backup string, begun time.Time, failure error) error {
	gauge := func(name, help string, value any) string {
		name = "providerd_backup_" + name
		return fmt.Sprintf("# HELP %s %s\n# TYPE %s gauge\n%s %v\n", name, help, name, name, value)
	}
	outcome := func(success int) string { return gauge("success", "1 if the last backup succeeded, else 0.", success) }
	text, err := files.ReadSmall(path)
	_, figures, isOurs := bytes.Cut(text, []byte("# HELP providerd_backup_last"))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read metrics of backup: %w", err)
	case len(text) > 0 && !bytes.HasPrefix(text, []byte("# HELP providerd_backup_")):
		return fmt.Errorf("%s does not contain metrics of backups; use another file", path)
	case failure == nil:
		written, err := os.Stat(backup)
		if err != nil {
			return fmt.Errorf("measure backup: %w", err)
		}
		text = []byte(outcome(1) +
			gauge("last_success_timestamp_seconds", "When the last successful backup finished.", time.Now().Unix()) +
			gauge("size_bytes", "Size of the last successful backup.", written.Size()) +
			gauge("duration_seconds", "How long the last successful backup took.", time.Since(begun).Seconds()))
	case isOurs:
		text = append([]byte(outcome(0)+"# HELP providerd_backup_last"), figures...)
	default:
		text = []byte(outcome(0))
	}
	if err := renameio.WriteFile(path, text, 0o644, renameio.IgnoreUmask()); err != nil {
		return fmt.Errorf("write metrics of backup: %w", err)
	}
	return nil
}
