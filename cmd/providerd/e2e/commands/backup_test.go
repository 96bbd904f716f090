package commands_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// TestBackupInterrupted ends a backup with each signal. No file has the name of a backup, and the next one succeeds.
func TestBackupInterrupted(t *testing.T) {
	t.Parallel()
	const rows = 40_000
	dir := t.TempDir()
	providerdtest.Fill(t, dir, rows)
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT} {
		name := strings.ReplaceAll(signal.String(), " ", "-") + ".db"
		said := interrupt(t, dir, name, signal, "backup", name)
		left := drafts(t, dir, name)
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("interrupted by %s, a backup exists: %v", signal, err)
		}
		if signal != syscall.SIGKILL && (len(left) > 0 || !strings.HasSuffix(said, "providerd: interrupted; no backup was written\n")) {
			t.Errorf("interrupted by %s, it leaves %v and prints %s", signal, left, said)
		}
		if signal == syscall.SIGKILL && len(left) == 0 {
			t.Error("killed, it leaves no file, so the test proves nothing")
		}
		providerdtest.RunCommand(t, dir, "backup", "next-"+name)
		if now := drafts(t, dir, "*"); !slices.Equal(now, left) {
			t.Errorf("the next backup leaves %v", now)
		}
		for _, path := range left {
			processtest.Must(t, os.Remove(path))
		}
		providerdtest.CheckIntegrity(t, filepath.Join(dir, "next-"+name))
	}
}

// interrupt sends a command a signal once it writes a file, and returns its messages.
func interrupt(t *testing.T, dir, file string, signal syscall.Signal, arguments ...string) string {
	t.Helper()
	known := drafts(t, dir, file)
	child, err := processtest.Start(providerdtest.Command(t.Context(), dir, arguments...))
	processtest.Must(t, err)
	processtest.WaitUntil(t, file+" is being written", func() bool {
		isNew := func(path string) bool { return !slices.Contains(known, path) }
		return slices.ContainsFunc(drafts(t, dir, file), isNew)
	})
	if err := child.Stop(signal); err == nil {
		t.Fatalf("%v finished before it was interrupted", arguments)
	}
	return child.Stderr.String()
}

func drafts(t *testing.T, dir, name string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, filepath.Dir(name), "."+filepath.Base(name)+"[0-9]*"))
	processtest.Must(t, err)
	return found
}

// TestRestoreInterrupted interrupts a restore, which leaves the previous database.
func TestRestoreInterrupted(t *testing.T) {
	t.Parallel()
	const rows = 40_000
	dir := t.TempDir()
	providerdtest.Fill(t, dir, rows)
	providerdtest.RunCommand(t, dir, "backup", "backup.db")
	providerdtest.RunCommand(t, dir, "provider", "delete", "17", "--yes")
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		interrupt(t, dir, "data/providerd.db", signal, "restore", "backup.db", "--replace")
		providerdtest.ExpectExit(t, providerdtest.Command(t.Context(), dir, "provider", "show", "17"), providerdtest.ExitFailed, "no such record")
	}
	providerdtest.RunCommand(t, dir, "restore", "backup.db", "--replace")
	providerdtest.RunCommand(t, dir, "provider", "show", "17")
	if left := drafts(t, dir, "data/*"); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
