package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/store/storetest"
)

// TestBackupInterrupted ends a backup by each signal. Nothing has the name of the backup, and the next one succeeds and
// removes what is left.
func TestBackupInterrupted(t *testing.T) {
	t.Parallel()
	const rows = 40_000
	folder := t.TempDir()
	if err := storetest.FillSQLite(t.Context(), filepath.Join(folder, "data", "providerd.db"), rows); err != nil {
		t.Fatal(err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT} {
		name := strings.ReplaceAll(signal.String(), " ", "-") + ".db"
		command := newCommand(t.Context(), folder, "backup", name)
		var said bytes.Buffer
		command.Stderr = &said
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		awaitDraft(t, folder, name, nil)
		if err := command.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err == nil {
			t.Fatal("the backup came to its end before it was interrupted")
		}
		left := drafts(t, folder, name)
		if _, err := os.Lstat(filepath.Join(folder, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("interrupted by %s, there is a backup: %v", signal, err)
		}
		if signal != syscall.SIGKILL && (len(left) > 0 || !strings.HasSuffix(said.String(), "providerd: interrupted; no backup was made\n")) {
			t.Errorf("interrupted by %s, it leaves %v and says %s", signal, left, &said)
		}
		if signal == syscall.SIGKILL && len(left) == 0 {
			t.Error("killed, it leaves nothing, so that nothing is shown")
		}
		operate(t, folder, "backup", name)
		if left := drafts(t, folder, name); len(left) > 0 {
			t.Errorf("the next backup leaves %v", left)
		}
		checkIntegrity(t, filepath.Join(folder, name))
	}
}

// awaitDraft returns once a file is being written that was not known.
func awaitDraft(t *testing.T, folder, name string, known []string) {
	t.Helper()
	waitUntil(t, name+" is being written", func() bool {
		isNew := func(path string) bool { return !slices.Contains(known, path) }
		return slices.ContainsFunc(drafts(t, folder, name), isNew)
	})
}

func drafts(t *testing.T, folder, name string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, name+".*.unfinished"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestRestoreInterrupted ends a restoration. The database is the one of before.
func TestRestoreInterrupted(t *testing.T) {
	t.Parallel()
	const rows = 40_000
	folder := t.TempDir()
	if err := storetest.FillSQLite(t.Context(), filepath.Join(folder, "data", "providerd.db"), rows); err != nil {
		t.Fatal(err)
	}
	operate(t, folder, "backup", "backup.db")
	operate(t, folder, "provider", "delete", "17", "--yes")
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		known := drafts(t, folder, "data/providerd.db")
		command := newCommand(t.Context(), folder, "restore", "backup.db", "--replace")
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		awaitDraft(t, folder, "data/providerd.db", known)
		if err := command.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err == nil {
			t.Fatal("the restoration came to its end before it was interrupted")
		}
		if output, err := newCommand(t.Context(), folder, "provider", "show", "17").CombinedOutput(); err == nil {
			t.Errorf("interrupted by %s, it has restored: %s", signal, output)
		}
	}
	operate(t, folder, "restore", "backup.db", "--replace")
	operate(t, folder, "provider", "show", "17")
	if left := drafts(t, folder, "data/*"); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
}
