//go:build slow

package shipped_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// TestServiceUnit checks the unit files with systemd-analyze, and that the exposure level of the server is at most 1.5 of
// 10.
func TestServiceUnit(t *testing.T) {
	t.Parallel()
	processtest.NeedPrograms(t, "systemd", "systemd-analyze")
	program, err := os.Executable()
	processtest.Must(t, err)
	dir := t.TempDir()
	processtest.Must(t, os.Mkdir(filepath.Join(dir, "providerd-backup.service.d"), 0o700))
	place := strings.NewReplacer("/usr/local/bin/providerd", program, "/usr/bin/rsync", program)
	for name, path := range map[string]string{
		"providerd.service": "providerd.service", "providerd-audit.service": "providerd-audit.service",
		"providerd-backup.service": "providerd-backup.service", "providerd-backup.timer": "providerd-backup.timer",
		"providerd-backup-ship.conf": "providerd-backup.service.d/providerd-backup-ship.conf",
	} {
		text := providerdtest.ReadFile(t, "cmd/providerd/deploy/"+name)
		processtest.Must(t, os.WriteFile(filepath.Join(dir, path), []byte(place.Replace(text)), 0o600))
	}
	unit := filepath.Join(dir, "providerd.service")
	for _, arguments := range [][]string{
		{"verify", "--man=no", unit, filepath.Join(dir, "providerd-backup.service"), filepath.Join(dir, "providerd-backup.timer"), filepath.Join(dir, "providerd-audit.service")},
		{"security", "--no-pager", "--offline=true", "--threshold=15", unit},
	} {
		output := processtest.Run(t, exec.CommandContext(t.Context(), "systemd-analyze", arguments...))
		if strings.Contains(output, dir) {
			t.Errorf("systemd-analyze %s: %s", arguments[0], output)
		}
	}
}
