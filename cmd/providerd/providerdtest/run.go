package providerdtest

import (
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
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

// Output runs a command, which must succeed, and returns its output without its messages.
func Output(t *testing.T, command *exec.Cmd) string {
	t.Helper()
	output, err := command.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("%v: %v: %s", command.Args, err, exit.Stderr)
	}
	processtest.Must(t, err)
	return string(output)
}

// ExpectExit runs a command, which must exit with a status and print something that matches a pattern. It returns the
// output and messages.
func ExpectExit(t *testing.T, command *exec.Cmd, status int, pattern string) string {
	t.Helper()
	output, err := command.CombinedOutput()
	if command.ProcessState.ExitCode() != status || !regexp.MustCompile(pattern).Match(output) {
		t.Errorf("%v: %v, want status %d and %q: %s", command.Args, err, status, pattern, output)
	}
	return string(output)
}

// Build builds the program as it is shipped, with further flags of go build. Under the race detector, the test binary
// takes several times the memory and the time.
func Build(t *testing.T, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "providerd")
	arguments := append([]string{"build", "-ldflags", "-s -w", "-o", program}, flags...)
	Run(t, "go", append(arguments, "example.com/providerd/cmd/providerd")...)
	return program
}
