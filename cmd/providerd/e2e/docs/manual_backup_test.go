package docs_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// TestManualBacksUp runs the commands beside a server, after it has stopped, and on what could be another machine.
func TestManualBacksUp(t *testing.T) {
	t.Parallel()
	examples := providerdtest.Examples(t, "backup.md", 4)
	dir, other := t.TempDir(), t.TempDir()
	providerdtest.Fill(t, dir, 3)
	server := providerdtest.Serve(t, dir)
	want := []int64{1, 2, 3}
	providerdtest.RunShell(t, dir, examples[0].Commands)
	runSchedule(t, dir, examples[1].Commands)
	server.Stop(t)
	providerdtest.RunCommand(t, dir, "provider", "delete", "1", "2", "--yes")
	providerdtest.RunShell(t, dir, examples[2].Commands)
	if pks := providerdtest.StoredPKs(t, dir); !slices.Equal(pks, want) {
		t.Errorf("restored %v", pks)
	}
	for _, name := range []string{"backup.db", "keyset.copy.json"} {
		processtest.Must(t, os.Rename(filepath.Join(dir, name), filepath.Join(other, name)))
	}
	providerdtest.RunShell(t, other, examples[3].Commands)
	if pks := providerdtest.StoredPKs(t, other); !slices.Equal(pks, want) {
		t.Errorf("restored %v elsewhere", pks)
	}
	providerdtest.CheckFilled(t, other, len(want))
}

// runSchedule runs the command until its first backup, and checks the name of that.
func runSchedule(t *testing.T, dir, command string) {
	t.Helper()
	processtest.Must(t, os.Mkdir(filepath.Join(dir, "backups"), 0o700))
	s, err := processtest.Start(providerdtest.ShellCommand(t, dir, "exec "+command))
	processtest.Must(t, err)
	processtest.WaitUntil(t, "the program waits for the next backup", func() bool {
		return strings.Contains(s.Stderr.String(), "the next backup is due at ")
	})
	if err := s.Stop(syscall.SIGTERM); err != nil {
		t.Errorf("%v: %s", err, s.Stderr)
	}
	made, err := filepath.Glob(filepath.Join(dir, "backups", "*"))
	if err != nil || len(made) != 1 || !regexp.MustCompile(`/providerd-2\w+Z\.db$`).MatchString(made[0]) {
		t.Errorf("made %v, %v", made, err)
	}
}

// TestManualRestoresOlderBackup replaces the master key beside a server, and then restores a backup that needs the old
// one.
func TestManualRestoresOlderBackup(t *testing.T) {
	t.Parallel()
	examples := providerdtest.Examples(t, "keys.md", 3)
	add, drop, restore := examples[0].Commands, examples[1].Commands, examples[2].Commands
	dir := t.TempDir()
	providerdtest.Fill(t, dir, 3)
	providerdtest.RunCommand(t, dir, "backup", "older.db")
	server := providerdtest.Serve(t, dir)
	for _, commands := range []string{add, drop} {
		providerdtest.RunShell(t, dir, commands)
		server.ExpectReadiness(t, "ready")
		server.Create(t, http.DefaultClient)
	}
	server.Stop(t)
	refused := providerdtest.Command(t.Context(), dir, "restore", "older.db", "--replace")
	providerdtest.ExpectExit(t, refused, providerdtest.ExitFailed, `lacks master key \d+`)
	if pks := providerdtest.StoredPKs(t, dir); len(pks) != 5 {
		t.Errorf("after a restore that was refused, %v are stored", pks)
	}
	providerdtest.RunShell(t, dir, restore)
	providerdtest.RunShell(t, dir, drop)
	providerdtest.CheckFilled(t, dir, 3)
}
