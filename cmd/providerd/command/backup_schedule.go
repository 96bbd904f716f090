package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store"
)

// timeInName is the format of the time in the name of a backup.
const timeInName = "20060102T150405Z"

// backupSchedule writes backups to a directory and removes old ones.
type backupSchedule struct {
	dir string
	// prefix begins the names of backups of the database.
	prefix   string
	every    time.Duration
	keep     int
	messages *console.Messages
}

// newBackupSchedule requires the directory to exist: if a disk is not mounted, nothing must be written below its mount
// point.
func newBackupSchedule(
	dir, database string, every flags.Duration, keep int, messages *console.Messages,
) (*backupSchedule, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("check backup directory: %w; create it first", err)
	}
	name := filepath.Base(database)
	return &backupSchedule{
		dir: dir, prefix: strings.TrimSuffix(name, filepath.Ext(name)) + "-", every: time.Duration(every), keep: keep,
		messages: messages,
	}, nil
}

// run writes backups until ctx ends.
func (s *backupSchedule) run(ctx context.Context, write func(path string) error) error {
	due, err := s.firstDue()
	if err != nil {
		return err
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
		due = time.Now().Add(s.every)
		err := s.round(write)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // An interruption is not a failure.
		}
		if err != nil {
			s.messages.Error(fmt.Errorf("backup failed: %w", console.Explain(err)))
		}
	}
}

// firstDue returns when the next backup is due, counted from the newest one, so that a program that restarts often does
// not push out the old ones.
func (s *backupSchedule) firstDue() (time.Time, error) {
	names, err := s.backups()
	if err != nil || len(names) == 0 {
		return time.Now(), err
	}
	newest, err := s.timeOf(names[len(names)-1])
	if err != nil || newest.After(time.Now()) {
		return time.Now(), err
	}
	return newest.Add(s.every), nil
}

// round writes a backup and, once it is verified, removes the oldest.
func (s *backupSchedule) round(write func(path string) error) error {
	name := s.prefix + time.Now().UTC().Format(timeInName) + ".db"
	err := write(filepath.Join(s.dir, name))
	if errors.Is(err, store.ErrDamaged) {
		return fmt.Errorf("%w; all older backups are kept", err)
	}
	if err != nil {
		return err
	}
	return s.prune(name)
}

// prune removes the oldest backups. It keeps the new one even if the clock was set back.
func (s *backupSchedule) prune(newest string) error {
	names, err := s.backups()
	if err != nil {
		return err
	}
	older := slices.DeleteFunc(names, func(name string) bool { return name == newest })
	for _, name := range older[:max(0, len(older)+1-s.keep)] {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
			return fmt.Errorf("remove old backup: %w", err)
		}
	}
	return nil
}

// backups returns the names of the backups, oldest first.
func (s *backupSchedule) backups() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list backups: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if _, err := s.timeOf(entry.Name()); err == nil && entry.Type().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// timeOf parses the time in the name of a backup.
func (s *backupSchedule) timeOf(name string) (time.Time, error) {
	text, isBackup := strings.CutPrefix(name, s.prefix)
	text, isFile := strings.CutSuffix(text, ".db")
	if !isBackup || !isFile {
		return time.Time{}, errors.New("not the name of a backup")
	}
	at, err := time.Parse(timeInName, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("not the name of a backup: %w", err)
	}
	return at, nil
}
