package command

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// schedule is a program that makes backups every second.
type schedule struct {
	command *exec.Cmd
	folder  string
	said    *syncBuffer
}

func startSchedule(t *testing.T, folder string, command *exec.Cmd) *schedule {
	t.Helper()
	s := &schedule{command: command, folder: folder, said: &syncBuffer{}}
	s.command.Stderr = s.said
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// awaitNext returns once the program waits for the next backup.
func (s *schedule) awaitNext(t *testing.T) {
	t.Helper()
	waitUntil(t, "the next backup is waited for", func() bool {
		return strings.Contains(s.said.String(), "the next backup is due at ")
	})
}

// names are those of everything in the folder of the backups.
func (s *schedule) names(t *testing.T) (names []string) {
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

// end tells the program to stop, which leaves nothing unfinished.
func (s *schedule) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := errors.Join(s.command.Process.Signal(signal), s.command.Wait()); err != nil {
		t.Errorf("%v: %s", err, s.said)
	}
	for _, name := range s.names(t) {
		if strings.HasSuffix(name, ".unfinished") {
			t.Errorf("%s is left", name)
		}
	}
}

// TestBackupSchedule makes backups every second, keeps two of them, and goes on after one that fails.
func TestBackupSchedule(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	storeSecrets(t, folder, 10)
	backups := filepath.Join(folder, "backups")
	if err := os.Mkdir(backups, 0o700); err != nil {
		t.Fatal(err)
	}
	const old, abandoned = "providerd-20200131T080000Z.db", "providerd-20200131T080000Z.db.17.unfinished"
	others := []string{"notes", "other-20200131T080000Z.db", "providerd-2020.db"}
	for _, name := range append(others, old, "providerd-20200131T140000Z.db", abandoned) {
		if err := os.WriteFile(filepath.Join(backups, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keyset := filepath.Join(folder, "data", "keyset.json")
	if err := os.Rename(keyset, keyset+".away"); err != nil {
		t.Fatal(err)
	}
	s := startSchedule(t, folder, newCommand(t.Context(), folder, "backup", "--every", "1s", "--keep", "2", "backups"))
	waitUntil(t, "a backup fails", func() bool { return strings.Contains(s.said.String(), "backup failed: no keyset file") })
	if names := s.names(t); !slices.Contains(names, old) {
		t.Errorf("after a failed backup, there are %v", names)
	}
	if err := os.Rename(keyset+".away", keyset); err != nil {
		t.Fatal(err)
	}
	verified := func() int { return strings.Count(s.said.String(), "is verified; the keyset is not in it") }
	waitUntil(t, "three backups are made", func() bool { return verified() >= 3 })
	waitUntil(t, "old backups are removed", func() bool { return len(s.names(t)) == len(others)+2 })
	s.end(t, syscall.SIGTERM)
	names := s.names(t)
	for _, name := range others {
		if !slices.Contains(names, name) {
			t.Errorf("%s was removed", name)
		}
	}
	newest := names[len(names)-1]
	t.Logf("%d backups were made, in the end there are %v", verified(), names)
	demandNoneBeforeItsTime(t, folder, names)
	operate(t, folder, "restore", filepath.Join("backups", newest), "--replace")
	checkSecrets(t, folder, 10)
}

// demandNoneBeforeItsTime starts the program again, which waits for the next backup.
func demandNoneBeforeItsTime(t *testing.T, folder string, names []string) {
	t.Helper()
	s := startSchedule(t, folder, newCommand(t.Context(), folder, "backup", "--every", "1h", "--keep", "2", "backups"))
	s.awaitNext(t)
	s.end(t, syscall.SIGINT)
	if now := s.names(t); !slices.Equal(now, names) {
		t.Errorf("started again, it makes %v of %v", now, names)
	}
}
