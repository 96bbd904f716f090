package providerdtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// Command returns a command of providerd that runs in dir. Words of the form NAME=VALUE before the command are
// environment variables, as in a shell. Those that set the extent of tests, of which each command would warn, are unset.
func Command(ctx context.Context, dir string, words ...string) *exec.Cmd {
	extent := regexp.MustCompile(`^PROVIDERD_(TEST_\w+|\w+_(ROUNDS|ROWS|BODIES|DURATION)|EXCHANGES|WRITE_GOLDEN)=`)
	command, arguments := exec.CommandContext(ctx, os.Args[0]), slices.IndexFunc(words, isArgument)
	command.Dir = dir
	command.Env = append(slices.DeleteFunc(os.Environ(), extent.MatchString), words[:arguments]...)
	command.Args = append([]string{"providerd"}, words[arguments:]...)
	return command
}

func isArgument(word string) bool { return !regexp.MustCompile(`^[A-Z_]+=`).MatchString(word) }

// ServeCommand is Command for "providerd serve" on a free port.
func ServeCommand(ctx context.Context, dir string, words ...string) *exec.Cmd {
	at := slices.IndexFunc(append(words, "serve"), isArgument)
	return Command(ctx, dir, slices.Insert(slices.Clone(words), at, "serve", "--listen", "127.0.0.1:0")...)
}

// Server is a running server. Child is nil if the test did not start it.
type Server struct {
	*processtest.Child
	// URL is the base URL, and Dir the working directory, with the initial token in data/.
	URL, Dir string
}

// Serve starts "providerd serve" in dir on a free port. After the test it is stopped, unless it has ended, and must
// exit with status 0.
func Serve(t *testing.T, dir string, words ...string) *Server {
	t.Helper()
	// The context of the test is canceled before the cleanup.
	server := MustStart(t, ServeCommand(context.WithoutCancel(t.Context()), dir, words...))
	t.Cleanup(func() {
		if !server.HasEnded() {
			server.Stop(t)
		}
	})
	return server
}

// MustStart is Start for a test. After the test the server is killed, unless it has ended.
func MustStart(t *testing.T, command *exec.Cmd) *Server {
	t.Helper()
	server := processtest.Try(Start(command)).Must(t)
	t.Cleanup(func() { _ = server.Child.Kill() })
	return server
}

// Start starts the command of a server and waits until it is ready.
func Start(command *exec.Cmd) (*Server, error) {
	child, err := processtest.Start(command)
	if err != nil {
		return nil, err
	}
	s := &Server{Child: child, Dir: command.Dir}
	err = processtest.Poll(func() error {
		line, _, isReady := strings.Cut(child.Stdout.String(), "\n")
		if s.URL, _ = strings.CutPrefix(line, "listening on "); isReady || child.HasEnded() {
			return nil
		}
		return fmt.Errorf("the server is not ready: %s", child.Stderr)
	})
	switch {
	case err != nil:
		return nil, err
	case child.HasEnded():
		return nil, fmt.Errorf("the server ended: %w: %s", child.Wait(), child.Stderr)
	case !strings.HasPrefix(s.URL, "http"):
		return nil, fmt.Errorf("first line is %q", s.URL)
	}
	return s, nil
}

// Signal sends the process a signal.
func (s *Server) Signal(t *testing.T, signal os.Signal) {
	t.Helper()
	processtest.Must(t, s.Command.Process.Signal(signal))
}

// Stop sends SIGTERM and waits for the process, which must exit with status 0.
func (s *Server) Stop(t *testing.T) {
	t.Helper()
	err := s.Child.Stop(syscall.SIGTERM)
	processtest.Expect(t, err == nil, "%v: %s", err, s.Stderr)
}

// Kill kills the process, which must not have ended by itself, and waits for it.
func (s *Server) Kill(t *testing.T) {
	t.Helper()
	processtest.Must(t, s.Child.Kill())
}

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
	processtest.Expect(t, command.ProcessState.ExitCode() == status && regexp.MustCompile(pattern).Match(output),
		"%v: %v, want status %d and %q: %s", command.Args, err, status, pattern, output)
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

// ListenAsManager listens on socket for notifications of servers.
func ListenAsManager(t *testing.T, socket string) *net.UnixConn {
	t.Helper()
	manager := processtest.Try(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})).Must(t)
	t.Cleanup(func() { _ = manager.Close() })
	return manager
}

// ShellCommand returns a shell that runs commands in dir, with providerd on the path.
func ShellCommand(t *testing.T, dir, commands string) *exec.Cmd {
	t.Helper()
	bin := t.TempDir()
	processtest.Must(t, os.Symlink(os.Args[0], filepath.Join(bin, "providerd")))
	shell := exec.CommandContext(t.Context(), "bash", "-euc", commands)
	shell.Dir = dir
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	return shell
}

// RunShell runs commands in dir, with providerd on the path, and returns their output and messages. They must succeed.
func RunShell(t *testing.T, dir, commands string) string {
	t.Helper()
	output, err := ShellCommand(t, dir, commands).CombinedOutput()
	processtest.Expect(t, err == nil, "%s: %v: %s", commands, err, output)
	return string(output)
}
