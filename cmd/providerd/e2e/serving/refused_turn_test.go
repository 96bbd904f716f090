//go:build slow

package serving_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestSecondServerIsRefused starts a server over a SQLite database whose server does not stop.
func TestSecondServerIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir)
	command := providerdtest.Command(t.Context(), dir, "serve", "--listen", "127.0.0.1:0")
	output, _ := command.CombinedOutput()
	want := regexp.MustCompile(fmt.Sprintf("lock database: process %d of .* serves data/providerd.db; stop it, or use PostgreSQL",
		server.Command.Process.Pid))
	if status := command.ProcessState.ExitCode(); status != 1 || !want.Match(output) {
		t.Errorf("exit status is %d, output %s", status, output)
	}
}

// TestOtherFileAsLock starts a server beside files that have the name of its lock, and leaves them as they are.
func TestOtherFileAsLock(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(lock string) error{
		"a file":    func(lock string) error { return os.WriteFile(lock, []byte("SQLite format 3"), 0o600) },
		"a symlink": func(lock string) error { return os.Symlink("kept", lock) },
		"a pipe":    func(lock string) error { return syscall.Mkfifo(lock, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			data := filepath.Join(dir, "data")
			err := errors.Join(os.Mkdir(data, 0o700), os.WriteFile(filepath.Join(data, "kept"), []byte("process 1"), 0o600),
				place(filepath.Join(data, "providerd.db.lock")))
			if err != nil {
				t.Fatal(err)
			}
			command := providerdtest.Command(t.Context(), dir, "serve", "--listen", "127.0.0.1:0")
			output, _ := command.CombinedOutput()
			if command.ProcessState.ExitCode() != 1 || !strings.Contains(string(output), "providerd.db.lock is not the lock file of a server; move it away") {
				t.Errorf("output is %s", output)
			}
			if kept, err := os.ReadFile(filepath.Join(data, "kept")); err != nil || string(kept) != "process 1" {
				t.Errorf("the other file has %q, %v", kept, err)
			}
		})
	}
}
