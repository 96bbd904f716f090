package docs_test

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestReadmeBacksUp pastes the commands beside a server, after it, and on what could be another machine.
func TestReadmeBacksUp(t *testing.T) {
	t.Parallel()
	examples := providerdtest.ReadmeExamples(t, "Backup and restore", 4)
	backUp, schedule, restore, elsewhere := examples[0], examples[1], examples[2], examples[3]
	folder, other := t.TempDir(), t.TempDir()
	providerdtest.StoreSecrets(t, folder, 3)
	server := providerdtest.Serve(t, folder)
	want := []int32{1, 2, 3}
	providerdtest.RunShell(t, folder, backUp)
	pasteSchedule(t, folder, schedule)
	server.MustStop(t)
	providerdtest.RunCommand(t, folder, "provider", "delete", "1", "2", "--yes")
	providerdtest.RunShell(t, folder, restore)
	if pks := providerdtest.StoredPKs(t, folder); !slices.Equal(pks, want) {
		t.Errorf("restored are %v", pks)
	}
	for _, name := range []string{"backup.db", "keyset.copy.json"} {
		if err := os.Rename(filepath.Join(folder, name), filepath.Join(other, name)); err != nil {
			t.Fatal(err)
		}
	}
	providerdtest.RunShell(t, other, elsewhere)
	if pks := providerdtest.StoredPKs(t, other); !slices.Equal(pks, want) {
		t.Errorf("restored elsewhere are %v", pks)
	}
	providerdtest.CheckSecrets(t, other, len(want))
}

// pasteSchedule lets the command make its first backup, as the README names it.
func pasteSchedule(t *testing.T, folder, command string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(folder, "backups"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := providerdtest.StartSchedule(t, folder, providerdtest.ShellCommand(t, folder, "exec "+command))
	s.WaitForNext(t)
	s.Stop(t, syscall.SIGTERM)
	made, err := filepath.Glob(filepath.Join(folder, "backups", "providerd-2*Z.db"))
	if err != nil || len(made) != 1 {
		t.Errorf("made are %v, %v", made, err)
	}
}
