// Package processtest runs programs for tests: servers, and the test binary as another program. They end with the
// test's process, even if that is killed.
//
// Start with Start; Run is for commands that end by themselves.
package processtest

import (
	"errors"
	"fmt"
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
	if command.SysProcAttr.Pdeathsig == 0 {
		command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
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
