package providerdtest

import (
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// CopyFile copies a file as cp does: a file that is there stays the same file.
func CopyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return errors.Join(err, source.Close())
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, source.Close(), target.Close())
}

// RestoreBackup restores the backup in a folder of its own, and serves it.
func RestoreBackup(t *testing.T, folder string) string {
	t.Helper()
	restored := t.TempDir()
	if err := os.Mkdir(filepath.Join(restored, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := CopyFile(filepath.Join(folder, "data", "keyset.json"), filepath.Join(restored, "data", "keyset.json")); err != nil {
		t.Fatal(err)
	}
	RunCommand(t, restored, "restore", filepath.Join(folder, "backup.db"))
	server, err := Start(t.Context(), restored)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	return restored
}

// CompareRestored demands that what was restored is the first of what the database has, all that is wanted among it.
func CompareRestored(t *testing.T, folder, restored string, wanted map[string]Record) {
	t.Helper()
	all, found := Stored(t, folder), Stored(t, restored)
	if len(found) > len(all) || !slices.Equal(found, all[:len(found)]) {
		t.Fatalf("%d records were restored, which are not the first of %d", len(found), len(all))
	}
	t.Logf("%d records were restored, %d of them created before the backup began", len(found), len(wanted))
	missing := maps.Clone(wanted)
	for _, one := range found {
		if missing[one.Name] == one {
			delete(missing, one.Name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("%d were acknowledged before the backup, and are not in it, such as %v", len(missing), Sample(missing))
	}
}

// Schedule is a program that makes backups every second.
type Schedule struct {
	command *exec.Cmd
	folder  string
	Stderr  *Buffer
}

// StartSchedule starts a command that makes backups in a folder of the folder, backups.
func StartSchedule(t *testing.T, folder string, command *exec.Cmd) *Schedule {
	t.Helper()
	s := &Schedule{command: command, folder: folder, Stderr: &Buffer{}}
	s.command.Stderr = s.Stderr
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// WaitForNext returns once the program waits for the next backup.
func (s *Schedule) WaitForNext(t *testing.T) {
	t.Helper()
	WaitUntil(t, "the next backup is waited for", func() bool {
		return strings.Contains(s.Stderr.String(), "the next backup is due at ")
	})
}

// List are those of everything in the folder of the backups.
func (s *Schedule) List(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.folder, "backups"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// Stop tells the program to stop, which leaves nothing unfinished.
func (s *Schedule) Stop(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := errors.Join(s.command.Process.Signal(signal), s.command.Wait()); err != nil {
		t.Errorf("%v: %s", err, s.Stderr)
	}
	for _, name := range s.List(t) {
		if strings.HasSuffix(name, ".unfinished") {
			t.Errorf("%s is left", name)
		}
	}
}
