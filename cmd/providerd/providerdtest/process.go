package providerdtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// Command returns a command of providerd that runs in dir. Words of the form NAME=VALUE before the command are
// environment variables, as in a shell.
func Command(ctx context.Context, dir string, words ...string) *exec.Cmd {
	command, arguments := exec.CommandContext(ctx, os.Args[0]), slices.IndexFunc(words, isArgument)
	command.Dir, command.Env = dir, append(environment(), words[:arguments]...)
	command.Args = append([]string{"providerd"}, words[arguments:]...)
	return command
}

// environment returns the environment without the variables that set the extent of tests, of which each command would
// warn.
func environment() []string {
	extent := regexp.MustCompile(`^PROVIDERD_(TEST_\w+|\w+_(ROUNDS|ROWS|BODIES|DURATION)|EXCHANGES|WRITE_GOLDEN)=`)
	return slices.DeleteFunc(os.Environ(), extent.MatchString)
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
	server, err := Start(command)
	processtest.Must(t, err)
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
	if err := s.Child.Stop(syscall.SIGTERM); err != nil {
		t.Errorf("%v: %s", err, s.Stderr)
	}
}

// Kill kills the process, which must not have ended by itself, and waits for it.
func (s *Server) Kill(t *testing.T) {
	t.Helper()
	processtest.Must(t, s.Child.Kill())
}
