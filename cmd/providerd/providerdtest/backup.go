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

// CopyFile copies a file as cp does: an existing file is overwritten in place.
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

// RestoreBackup restores dir/backup.db in a new directory, starts and stops a server there, and returns the directory.
func RestoreBackup(t *testing.T, dir string) string {
	t.Helper()
	restored := t.TempDir()
	if err := os.Mkdir(filepath.Join(restored, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	const keyset = "data/keyset.json"
	if err := CopyFile(filepath.Join(dir, keyset), filepath.Join(restored, keyset)); err != nil {
		t.Fatal(err)
	}
	RunCommand(t, restored, "restore", filepath.Join(dir, "backup.db"))
	server, err := Start(t.Context(), restored)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	return restored
}

// CompareRestored checks that the restored records are the oldest ones in dir, and include those wanted.
func CompareRestored(t *testing.T, dir, restored string, wanted map[string]Record) {
	t.Helper()
	all, found := Stored(t, dir), Stored(t, restored)
	if len(found) > len(all) || !slices.Equal(found, all[:len(found)]) {
		t.Fatalf("the %d restored records are not the oldest of %d", len(found), len(all))
	}
	t.Logf("restored %d records, %d of them created before the backup began", len(found), len(wanted))
	missing := maps.Clone(wanted)
	for _, record := range found {
		if missing[record.Name] == record {
			delete(missing, record.Name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("%d records acknowledged before the backup are not in it, such as %v", len(missing), Sample(missing))
	}
}

// Schedule is a program that creates a backup every second.
type Schedule struct {
	command *exec.Cmd
	dir     string
	Stderr  *Buffer
}

// StartSchedule starts a command that creates backups in dir/backups.
func StartSchedule(t *testing.T, dir string, command *exec.Cmd) *Schedule {
	t.Helper()
	s := &Schedule{command: command, dir: dir, Stderr: &Buffer{}}
	s.command.Stderr = s.Stderr
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// WaitForNext waits until the program waits for the next backup.
func (s *Schedule) WaitForNext(t *testing.T) {
	t.Helper()
	WaitUntil(t, "the program waits for the next backup", func() bool {
		return strings.Contains(s.Stderr.String(), "the next backup is due at ")
	})
}

// List returns the names of everything in the directory of the backups.
func (s *Schedule) List(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, "backups"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// Stop sends a signal and waits for the program, which must not leave an unfinished backup.
func (s *Schedule) Stop(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := errors.Join(s.command.Process.Signal(signal), s.command.Wait()); err != nil {
		t.Errorf("%v: %s", err, s.Stderr)
	}
	for _, name := range s.List(t) {
		if strings.HasSuffix(name, ".unfinished") {
			t.Errorf("%s was left behind", name)
		}
	}
}
