package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// pasting runs commands in a folder, where providerd is on the path.
func pasting(t *testing.T, folder, commands string) *exec.Cmd {
	t.Helper()
	bin := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(bin, "providerd")); err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-euc", commands)
	shell.Dir = folder
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	return shell
}

func paste(t *testing.T, folder, commands string) {
	t.Helper()
	if output, err := pasting(t, folder, commands).CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", commands, err, output)
	}
}

// TestReadmeBacksUp pastes the commands beside a server, after it, and on what could be another machine.
func TestReadmeBacksUp(t *testing.T) {
	t.Parallel()
	examples := examplesOf(t, "Backup and restore", 4)
	backUp, schedule, restore, elsewhere := examples[0], examples[1], examples[2], examples[3]
	folder, other := t.TempDir(), t.TempDir()
	storeSecrets(t, folder, 3)
	server := serve(t, folder)
	want := []int32{1, 2, 3}
	paste(t, folder, backUp)
	pasteSchedule(t, folder, schedule)
	server.end(t)
	operate(t, folder, "provider", "delete", "1", "2", "--yes")
	paste(t, folder, restore)
	if pks := storedPKs(t, folder); !slices.Equal(pks, want) {
		t.Errorf("restored are %v", pks)
	}
	for _, name := range []string{"backup.db", "keyset.copy.json"} {
		if err := os.Rename(filepath.Join(folder, name), filepath.Join(other, name)); err != nil {
			t.Fatal(err)
		}
	}
	paste(t, other, elsewhere)
	if pks := storedPKs(t, other); !slices.Equal(pks, want) {
		t.Errorf("restored elsewhere are %v", pks)
	}
	checkSecrets(t, other, len(want))
}

// pasteSchedule lets the command make its first backup, as the README names it.
func pasteSchedule(t *testing.T, folder, command string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(folder, "backups"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := startSchedule(t, folder, pasting(t, folder, "exec "+command))
	s.awaitNext(t)
	s.end(t, syscall.SIGTERM)
	made, err := filepath.Glob(filepath.Join(folder, "backups", "providerd-2*Z.db"))
	if err != nil || len(made) != 1 {
		t.Errorf("made are %v, %v", made, err)
	}
}
