package providerdtest

import (
	"os"
	"os/exec"
	"testing"
)

// RunCommand runs a command of the operator and returns what it says.
func RunCommand(t *testing.T, folder string, arguments ...string) string {
	t.Helper()
	return RunProgram(t, os.Args[0], folder, arguments...)
}

// RunProgram is RunCommand for a program of another build.
func RunProgram(t *testing.T, program, folder string, arguments ...string) string {
	t.Helper()
	command := Command(t.Context(), folder, arguments...)
	command.Path = program
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", arguments, err, output)
	}
	return string(output)
}

// Run runs a program of the machine, which must end well.
func Run(t *testing.T, program string, arguments ...string) {
	t.Helper()
	if output, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", program, err, output)
	}
}
