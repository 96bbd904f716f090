package commands_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestBackupSchedule writes a backup every second, keeps two, and continues after a failure.
func TestBackupSchedule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	providerdtest.StoreSecrets(t, dir, 10)
	backups := filepath.Join(dir, "backups")
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
	keyset := filepath.Join(dir, "data", "keyset.json")
	if err := os.Rename(keyset, keyset+".away"); err != nil {
		t.Fatal(err)
	}
	s := providerdtest.StartSchedule(t, dir, providerdtest.Command(t.Context(), dir, "backup", "--every", "1s", "--keep", "2", "backups"))
	providerdtest.WaitUntil(t, "a backup fails", func() bool { return strings.Contains(s.Stderr.String(), "backup failed: no keyset file") })
	if names := s.List(t); !slices.Contains(names, old) {
		t.Errorf("after a failed backup, the backups are %v", names)
	}
	if err := os.Rename(keyset+".away", keyset); err != nil {
		t.Fatal(err)
	}
	verified := func() int { return strings.Count(s.Stderr.String(), "it does not contain the keyset") }
	providerdtest.WaitUntil(t, "three backups are made", func() bool { return verified() >= 3 })
	providerdtest.WaitUntil(t, "old backups are removed", func() bool { return len(s.List(t)) == len(others)+2 })
	s.Stop(t, syscall.SIGTERM)
	names := s.List(t)
	for _, name := range others {
		if !slices.Contains(names, name) {
			t.Errorf("%s was removed", name)
		}
	}
	newest := names[len(names)-1]
	t.Logf("%d backups were made, in the end there are %v", verified(), names)
	expectNoEarlyBackup(t, dir, names)
	providerdtest.RunCommand(t, dir, "restore", filepath.Join("backups", newest), "--replace")
	providerdtest.CheckSecrets(t, dir, 10)
}

// expectNoEarlyBackup starts the program again, which must wait for the next backup.
func expectNoEarlyBackup(t *testing.T, dir string, names []string) {
	t.Helper()
	s := providerdtest.StartSchedule(t, dir, providerdtest.Command(t.Context(), dir, "backup", "--every", "1h", "--keep", "2", "backups"))
	s.WaitForNext(t)
	s.Stop(t, syscall.SIGINT)
	if now := s.List(t); !slices.Equal(now, names) {
		t.Errorf("after a restart, the backups are %v, were %v", now, names)
	}
}
