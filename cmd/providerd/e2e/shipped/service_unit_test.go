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
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "providerd-backup.service.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	place := strings.NewReplacer("/usr/local/bin/providerd", program, "/usr/bin/rsync", program)
	for name, path := range map[string]string{
		"providerd.service": "providerd.service", "providerd-audit.service": "providerd-audit.service",
		"providerd-backup.service": "providerd-backup.service", "providerd-backup.timer": "providerd-backup.timer",
		"providerd-backup-ship.conf": "providerd-backup.service.d/providerd-backup-ship.conf",
	} {
		text := providerdtest.ReadFile(t, "cmd/providerd/deploy/"+name)
		if err := os.WriteFile(filepath.Join(dir, path), []byte(place.Replace(text)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	unit := filepath.Join(dir, "providerd.service")
	for _, arguments := range [][]string{
		{"verify", "--man=no", unit, filepath.Join(dir, "providerd-backup.service"), filepath.Join(dir, "providerd-backup.timer"), filepath.Join(dir, "providerd-audit.service")},
		{"security", "--no-pager", "--offline=true", "--threshold=15", unit},
	} {
		output, err := exec.CommandContext(t.Context(), "systemd-analyze", arguments...).CombinedOutput()
		if err != nil || strings.Contains(string(output), dir) {
			t.Errorf("systemd-analyze %s: %v: %s", arguments[0], err, output)
		}
	}
}
