//go:build slow

package serving_test

import (
	"fmt"
	"regexp"
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
