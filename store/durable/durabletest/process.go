package durabletest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// Program returns a command for testscript.Main that runs work with the arguments of the command.
func Program(work func(ctx context.Context, arguments []string) error) func() {
	return func() {
		if err := work(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// AwaitProceed reports that the program is ready, and returns once the test calls Proceed.
func AwaitProceed() error {
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	return nil
}

// Process is the test binary running as another program, as tests of locks between processes need.
type Process struct {
	command *exec.Cmd
	stdin   io.Closer
	stderr  bytes.Buffer
}

// Start starts the program named by the first argument, and returns once it calls AwaitProceed. The process ends with
// the test.
func Start(t *testing.T, arguments ...string) *Process {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{command: exec.CommandContext(t.Context(), program)}
	p.command.Args = arguments
	p.command.Stderr = &p.stderr
	stdin, stdinErr := p.command.StdinPipe()
	stdout, stdoutErr := p.command.StdoutPipe()
	if err := errors.Join(stdinErr, stdoutErr, p.command.Start()); err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	if _, err := io.ReadFull(stdout, make([]byte, len("ready\n"))); err != nil {
		t.Fatalf("%v: %v, %v: %s", arguments, err, p.command.Wait(), &p.stderr)
	}
	return p
}

// Proceed lets the program continue.
func (p *Process) Proceed(t *testing.T) {
	t.Helper()
	if err := p.stdin.Close(); err != nil {
		t.Fatal(err)
	}
}

// End lets the program continue and waits until it exits successfully.
func (p *Process) End(t *testing.T) {
	t.Helper()
	_ = p.stdin.Close()
	if err := p.command.Wait(); err != nil {
		t.Errorf("%v: %v: %s", p.command.Args, err, &p.stderr)
	}
}

// Kill kills the program, as a crash would.
func (p *Process) Kill(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.command.Wait(); p.command.ProcessState.Exited() {
		t.Fatalf("%v ended by itself: %v", p.command.Args, err)
	}
}
