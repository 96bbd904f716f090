// Package processtest runs programs for tests: servers, and the test binary as another program. They end with the
// test's process, even if that is killed.
//
// Start with Start; Run is for commands that end by themselves.
package processtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Child is a program that runs until it is stopped or killed.
type Child struct {
	Command *exec.Cmd
	// Stdout and Stderr are what the program has written so far, unless the command has writers of its own.
	Stdout, Stderr *Buffer

	ended chan struct{}
	err   error
}

// Start starts a command.
func Start(command *exec.Cmd) (*Child, error) {
	c := &Child{Command: command, Stdout: &Buffer{}, Stderr: &Buffer{}, ended: make(chan struct{})}
	if command.Stdout == nil {
		command.Stdout = c.Stdout
	}
	if command.Stderr == nil {
		command.Stderr = c.Stderr
	}
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Pdeathsig = cmp.Or(command.SysProcAttr.Pdeathsig, syscall.SIGKILL)
	started := make(chan error)
	go func() {
		// The kernel sends Pdeathsig when the thread that started the program ends: https://go.dev/issue/27505
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(c.ended)
		err := command.Start()
		started <- err
		if err == nil {
			c.err = command.Wait()
		}
	}()
	return c, <-started
}

// HasEnded reports whether the program and all children that write to its output have ended.
func (c *Child) HasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Wait waits until the program has ended, and returns the error of its command.
func (c *Child) Wait() error {
	select {
	case <-c.ended:
		return c.err
	case <-time.After(Timeout):
		return fmt.Errorf("%v does not end: %s", c.Command.Args, c.Stderr)
	}
}

// Stop sends a signal and waits until the program has ended. It returns an error unless its exit status is 0.
func (c *Child) Stop(signal os.Signal) error {
	return errors.Join(c.Command.Process.Signal(signal), c.Wait())
}

// Kill kills the program, as a crash would. It returns an error if the program had ended by itself.
func (c *Child) Kill() error {
	err := c.Command.Process.Kill()
	if waitErr := c.Wait(); !c.HasEnded() {
		return waitErr
	}
	return err
}

// Run runs a command, which must succeed, and returns its output.
func Run(t testing.TB, command *exec.Cmd) string {
	t.Helper()
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", command.Args, err, output)
	}
	return string(output)
}

// Program returns a program for testscript.Main that calls work with its arguments.
func Program(work func(ctx context.Context, arguments []string) error) func() {
	return func() {
		if err := work(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// AwaitProceed reports that the program is ready, and returns once the test calls End.
func AwaitProceed() error {
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// Other is the test binary running as another program, as tests of locks between processes need.
type Other struct {
	*Child
	stdin io.Closer
}

// StartSelf starts a program of the test binary, and returns once it calls AwaitProceed.
func StartSelf(t testing.TB, program string, arguments ...string) Other {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Args = append([]string{program}, arguments...)
	stdin, err := command.StdinPipe()
	Must(t, err)
	child, err := Start(command)
	Must(t, err)
	WaitUntil(t, "the program is ready", func() bool {
		if child.HasEnded() {
			t.Fatalf("%v: %v: %s", command.Args, child.Wait(), child.Stderr)
		}
		return child.Stdout.String() == "ready\n"
	})
	return Other{child, stdin}
}

// End lets the program continue and waits until it exits successfully.
func (o Other) End(t testing.TB) {
	t.Helper()
	_ = o.stdin.Close()
	if err := o.Wait(); err != nil {
		t.Errorf("%v: %v: %s", o.Command.Args, err, o.Stderr)
	}
}
