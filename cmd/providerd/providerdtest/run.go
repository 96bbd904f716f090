package providerdtest

import (
	"os"
	"os/exec"
	"testing"
)

// RunCommand runs a command of providerd, which must succeed, and returns its output and messages.
func RunCommand(t *testing.T, dir string, arguments ...string) string {
	t.Helper()
	return RunProgram(t, os.Args[0], dir, arguments...)
}

// RunProgram is RunCommand with another build of providerd.
func RunProgram(t *testing.T, program, dir string, arguments ...string) string {
	t.Helper()
	command := Command(t.Context(), dir, arguments...)
	command.Path = program
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", arguments, err, output)
	}
	return string(output)
}

// Run runs a program, which must succeed.
func Run(t *testing.T, program string, arguments ...string) {
	t.Helper()
	if output, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", program, err, output)
	}
}
