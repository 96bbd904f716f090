//go:build slow

package hostile_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// unwritable returns standard outputs that cannot be written: a full disk, and a pipe without a reader.
func unwritable(t *testing.T) map[string]*os.File {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	processtest.Must(t, err)
	reader, writer, err := os.Pipe()
	processtest.Must(t, err)
	processtest.Must(t, reader.Close())
	t.Cleanup(func() { _ = errors.Join(full.Close(), writer.Close()) })
	return map[string]*os.File{"no space left on device": full, "broken pipe": writer}
}

// printTo runs a command with this standard output, and returns its exit status and standard error.
func printTo(t *testing.T, dir string, stdout *os.File, line string) (status int, messages string) {
	t.Helper()
	command := providerdtest.Command(t.Context(), dir, strings.Fields(line)...)
	var stderr strings.Builder
	command.Stdout, command.Stderr = stdout, &stderr
	_ = command.Run()
	return command.ProcessState.ExitCode(), stderr.String()
}

// TestUnwritableOutputFailsCommands checks that every command fails if its output cannot be written, and prints no error
// if the reader of a pipe has exited.
func TestUnwritableOutputFailsCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir)
	server.Create(t, contracttest.Client(t))
	server.Stop(t)
	processtest.Must(t, os.WriteFile(dir+"/one.yaml", []byte(entries(1)), 0o600))
	for fault, stdout := range unwritable(t) {
		for _, line := range []string{
			"--help", "token create --help", "version", "token list", "provider list", "provider list --output json",
			"provider show 1", "provider show 1 --output json", "application list", "audit", "audit --output json",
			"provider export", "token list --output json", "application list --output json", "apply --schema", "completion bash", "apply -f one.yaml --dry-run", "apply -f one.yaml --dry-run --output json",
		} {
			status, stderr := printTo(t, dir, stdout, line)
			isReported := strings.Contains(stderr, "providerd: ") && strings.HasSuffix(stderr, fault+"\n")
			if isFull := strings.HasPrefix(fault, "no space"); status != providerdtest.ExitFailed || isReported != isFull {
				t.Errorf("%s: exit status is %d: %s", line, status, stderr)
			}
		}
	}
	expectTokensRevoked(t, dir)
}

// expectTokensRevoked checks that a token that could not be printed is revoked, and that an error reports it.
func expectTokensRevoked(t *testing.T, dir string) {
	t.Helper()
	for fault, stdout := range unwritable(t) {
		status, stderr := printTo(t, dir, stdout, "token create --name ci --allow providers_oauth2_create")
		if status != providerdtest.ExitFailed || !strings.Contains(stderr, "could not be printed and was revoked: ") ||
			!strings.HasSuffix(stderr, fault+"\n") {
			t.Errorf("exit status is %d: %s", status, stderr)
		}
	}
	listed := providerdtest.RunCommand(t, dir, "token", "list")
	if lines := strings.Split(strings.TrimSpace(listed), "\n"); len(lines) != 4 ||
		!strings.HasSuffix(lines[1], " active") || !strings.HasSuffix(lines[2], " revoked") ||
		!strings.HasSuffix(lines[3], " revoked") {
		t.Errorf("tokens are %s", listed)
	}
}
