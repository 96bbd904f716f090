package providerdtest

import (
	"os/exec"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// RunCommand runs a command of providerd, which must succeed, and returns its output and messages.
func RunCommand(t *testing.T, dir string, words ...string) string {
	t.Helper()
	return processtest.Run(t, Command(t.Context(), dir, words...))
}

// Run runs a program, which must succeed.
func Run(t *testing.T, program string, arguments ...string) {
	t.Helper()
	processtest.Run(t, exec.CommandContext(t.Context(), program, arguments...))
}
