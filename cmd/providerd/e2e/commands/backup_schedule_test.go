package commands_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// TestBackupSchedule writes a backup every second, keeps two, and continues after a failure.
func TestBackupSchedule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	providerdtest.Fill(t, dir, 10)
	backups := filepath.Join(dir, "backups")
	processtest.Must(t, os.Mkdir(backups, 0o700))
	const old = "providerd-20200131T080000Z.db"
	others := []string{"notes", "other-20200131T080000Z.db", "providerd-2020.db"}
	for _, name := range append(others, old, "providerd-20200131T140000Z.db") {
		processtest.Must(t, os.WriteFile(filepath.Join(backups, name), nil, 0o600))
	}
	keyset := filepath.Join(dir, "data", "keyset.json")
	processtest.Must(t, os.Rename(keyset, keyset+".away"))
	s := startSchedule(t, dir, "1s")
	processtest.WaitUntil(t, "a backup fails", func() bool { return strings.Contains(s.Stderr.String(), "backup failed: no keyset file") })
	if names := namesIn(t, backups); !slices.Contains(names, old) {
		t.Errorf("after a failed backup, the backups are %v", names)
	}
	processtest.Must(t, os.Rename(keyset+".away", keyset))
	verified := func() int { return strings.Count(s.Stderr.String(), "it does not contain the keyset") }
	processtest.WaitUntil(t, "three backups are made", func() bool { return verified() >= 3 })
	processtest.WaitUntil(t, "old backups are removed", func() bool { return len(namesIn(t, backups)) == len(others)+2 })
	stopSchedule(t, s, backups, syscall.SIGTERM)
	names := namesIn(t, backups)
	for _, name := range others {
		if !slices.Contains(names, name) {
			t.Errorf("%s was removed", name)
		}
	}
	newest := names[len(names)-1]
	t.Logf("%d backups were made, in the end there are %v", verified(), names)
	expectNoEarlyBackup(t, dir, backups, names)
	providerdtest.RunCommand(t, dir, "restore", filepath.Join("backups", newest), "--replace")
	providerdtest.CheckFilled(t, dir, 10)
}

// startSchedule starts to write backups to dir/backups, and to keep two.
func startSchedule(t *testing.T, dir, every string) *processtest.Child {
	t.Helper()
	s, err := processtest.Start(providerdtest.Command(t.Context(), dir, "backup", "--every", every, "--keep", "2", "backups"))
	processtest.Must(t, err)
	return s
}

// stopSchedule stops the program, which must not leave part of a backup.
func stopSchedule(t *testing.T, s *processtest.Child, backups string, signal syscall.Signal) {
	t.Helper()
	if err := s.Stop(signal); err != nil {
		t.Errorf("%v: %s", err, s.Stderr)
	}
	if names := fmt.Sprint(namesIn(t, backups)); strings.Contains(names, ".providerd-") {
		t.Errorf("the program left %s", names)
	}
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	processtest.Must(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// expectNoEarlyBackup starts the program again, which must wait for the next backup.
func expectNoEarlyBackup(t *testing.T, dir, backups string, names []string) {
	t.Helper()
	s := startSchedule(t, dir, "1h")
	processtest.WaitUntil(t, "the program waits for the next backup", func() bool {
		return strings.Contains(s.Stderr.String(), "the next backup is due at ")
	})
	stopSchedule(t, s, backups, syscall.SIGINT)
	if now := namesIn(t, backups); !slices.Equal(now, names) {
		t.Errorf("after a restart, the backups are %v, were %v", now, names)
	}
}
