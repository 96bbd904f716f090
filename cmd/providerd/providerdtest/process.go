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

// Command returns a command of providerd that runs in dir.
func Command(ctx context.Context, dir string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, os.Args[0])
	command.Args = append([]string{"providerd"}, arguments...)
	command.Dir = dir
	return command
}

// Server is a running server. Command and Stderr are nil if the test did not start it.
type Server struct {
	Command *exec.Cmd
	// URL is the base URL, and Dir the working directory, with the initial token in data/.
	URL, Dir string
	// Stderr is the standard error so far.
	Stderr *Buffer
}

// Serve starts "providerd serve" in dir on a free port. After the test it is stopped, unless it has ended, and must
// exit with status 0.
func Serve(t *testing.T, dir string, arguments ...string) *Server {
	t.Helper()
	return ServeWith(t, dir, nil, arguments...)
}

// ServeWith is Serve with more environment variables.
func ServeWith(t *testing.T, dir string, environment []string, arguments ...string) *Server {
	t.Helper()
	// The context of the test is canceled before the cleanup.
	server, err := StartWith(context.WithoutCancel(t.Context()), dir, environment, arguments...)
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

// Start starts "providerd serve" in dir on a free port, and waits until it is ready.
func Start(ctx context.Context, dir string, arguments ...string) (*Server, error) {
	return StartWith(ctx, dir, nil, arguments...)
}

// StartWith is Start with more environment variables.
func StartWith(
	ctx context.Context, dir string, environment []string, arguments ...string,
) (*Server, error) {
	return StartProgram(ctx, os.Args[0], dir, environment, arguments...)
}

// StartProgram is StartWith with another build of providerd.
func StartProgram(
	ctx context.Context, program, dir string, environment []string, arguments ...string,
) (*Server, error) {
	command := Command(ctx, dir, append([]string{"serve", "--listen", "127.0.0.1:0"}, arguments...)...)
	command.Path = program
	command.Env = append(os.Environ(), environment...)
	return StartCommand(command)
}

// StartCommand starts a server and waits until it is ready. It collects standard error, unless the command already has
// one.
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

// Stop sends SIGTERM and waits for the process. It returns an error unless the exit status is 0.
func (s *Server) Stop() error {
	timer := time.AfterFunc(ReadyTimeout, func() { _ = s.Command.Process.Kill() })
	defer timer.Stop()
	return errors.Join(s.Command.Process.Signal(syscall.SIGTERM), s.Command.Wait())
}

// MustStop is Stop for a test.
func (s *Server) MustStop(t *testing.T) {
	t.Helper()
	if err := s.Stop(); err != nil {
		t.Errorf("%v: %s", err, s.Stderr)
	}
}

// Kill kills the process and waits for it.
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

// IsClosed reports whether the server refuses connections.
func (s *Server) IsClosed() bool {
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err == nil {
		_ = connection.Close()
	}
	return err != nil
}
