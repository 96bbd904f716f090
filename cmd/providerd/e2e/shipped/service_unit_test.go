//go:build slow

package shipped_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestServiceUnit checks the unit file with systemd-analyze, and that its exposure level is at most 1.5 of 10.
func TestServiceUnit(t *testing.T) {
	t.Parallel()
	providerdtest.NeedPrograms(t, "systemd", "systemd-analyze")
	text := providerdtest.ReadFile(t, "cmd/providerd/deploy/providerd.service")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "providerd.service")
	placed := strings.ReplaceAll(text, "/usr/local/bin/providerd", program)
	if err := os.WriteFile(unit, []byte(placed), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{
		{"verify", "--man=no", unit},
		{"security", "--no-pager", "--offline=true", "--threshold=15", unit},
	} {
		output, err := exec.CommandContext(t.Context(), "systemd-analyze", arguments...).CombinedOutput()
		if err != nil || strings.Contains(string(output), unit+":") {
			t.Errorf("systemd-analyze %s: %v: %s", arguments[0], err, output)
		}
	}
}
