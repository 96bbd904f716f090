package providerdtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Command is a command of providerd that is to be run in a folder.
func Command(ctx context.Context, folder string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, os.Args[0])
	command.Args = append([]string{"providerd"}, arguments...)
	command.Dir = folder
	return command
}

// Server is providerd, serving. One that the test has not started itself has no Command and no Stderr.
type Server struct {
	Command *exec.Cmd
	// URL is where callers reach it, and Dir what it runs in, with the initial token in data/.
	URL, Dir string
	// Stderr is what it has said so far.
	Stderr *Buffer
}

// Serve starts "providerd serve" on a free port in a folder. It must end well, which it is told to after the test
// unless it has ended before.
func Serve(t *testing.T, folder string, arguments ...string) *Server {
	t.Helper()
	return ServeWith(t, folder, nil, arguments...)
}

// ServeWith is Serve with more environment variables.
func ServeWith(t *testing.T, folder string, environment []string, arguments ...string) *Server {
	t.Helper()
	// The context of the test ends before the cleanup.
	server, err := StartWith(context.WithoutCancel(t.Context()), folder, environment, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if server.Command.ProcessState == nil {
			server.MustStop(t)
		}
	})
	return server
}

// ServeCommand is StartCommand for a test.
func ServeCommand(t *testing.T, command *exec.Cmd) *Server {
	t.Helper()
	server, err := StartCommand(command)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// Start starts "providerd serve" on a free port in a folder and waits until it is ready.
func Start(ctx context.Context, folder string, arguments ...string) (*Server, error) {
	return StartWith(ctx, folder, nil, arguments...)
}

// StartWith is Start with more environment variables.
func StartWith(
	ctx context.Context, folder string, environment []string, arguments ...string,
) (*Server, error) {
	return StartProgram(ctx, os.Args[0], folder, environment, arguments...)
}

// StartProgram is StartWith for a program of another build.
func StartProgram(
	ctx context.Context, program, folder string, environment []string, arguments ...string,
) (*Server, error) {
	command := Command(ctx, folder, append([]string{"serve", "--listen", "127.0.0.1:0"}, arguments...)...)
	command.Path = program
	command.Env = append(os.Environ(), environment...)
	return StartCommand(command)
}

// StartCommand starts a command that serves and waits until it is ready. What it says is kept, unless the command has a
// standard error of its own.
func StartCommand(command *exec.Cmd) (*Server, error) {
	stderr := &Buffer{}
	if command.Stderr == nil {
		command.Stderr = stderr
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	timer := time.AfterFunc(ReadyTimeout, func() { _ = command.Process.Kill() })
	defer timer.Stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%w, %w: %s", err, command.Wait(), stderr)
	}
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		return nil, fmt.Errorf("first line is %q", line)
	}
	return &Server{Command: command, URL: url, Dir: command.Dir, Stderr: stderr}, nil
}

// Signal sends the process a signal.
func (s *Server) Signal(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := s.Command.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// Stop sends SIGTERM and waits until the process ends well.
func (s *Server) Stop() error {
	timer := time.AfterFunc(ReadyTimeout, func() { _ = s.Command.Process.Kill() })
	defer timer.Stop()
	return errors.Join(s.Command.Process.Signal(syscall.SIGTERM), s.Command.Wait())
}

// MustStop stops the process, which must end well.
func (s *Server) MustStop(t *testing.T) {
	t.Helper()
	if err := s.Stop(); err != nil {
		t.Errorf("%v: %s", err, s.Stderr)
	}
}

// Kill ends the process at once.
func (s *Server) Kill() error {
	if err := s.Command.Process.Kill(); err != nil {
		return err
	}
	var exit *exec.ExitError
	if err := s.Command.Wait(); !errors.As(err, &exit) {
		return fmt.Errorf("killed process: %w", err)
	}
	return nil
}

// IsClosed tells whether the server takes no connections any more.
func (s *Server) IsClosed() bool {
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err == nil {
		_ = connection.Close()
	}
	return err != nil
}
