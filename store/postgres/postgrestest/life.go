package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// startOnFreePort starts the server for the first time, and gives it its port.
func (c *Cluster) startOnFreePort(ctx context.Context) error {
	if err := c.home.compileLocale(ctx, c.locale); err != nil {
		return err
	}
	return onFreePort(func(port int) error {
		c.port = port
		return c.start(ctx)
	})
}

// start starts the server, and returns once it answers.
func (c *Cluster) start(ctx context.Context) error {
	// Shared memory that is a file in the folder goes with it, however the server ends.
	postmaster, err := c.home.start(syscall.SIGQUIT, c.program("postgres"), "-D", c.Dir(), "-p", strconv.Itoa(c.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "cluster_name="+c.Name,
		"-c", "dynamic_shared_memory_type=mmap")
	if err != nil {
		return err
	}
	c.postmaster = postmaster
	return postmaster.awaitAnswer(ctx, c.URL(ownDatabase))
}

// running tells whether any process of the server is left.
func (c *Cluster) running() bool {
	return c.postmaster != nil && !c.postmaster.ended()
}

// Start starts the server again, on the port that it had, and returns once it answers. It recovers first where it was
// killed.
func (c *Cluster) Start(t testing.TB) {
	t.Helper()
	if c.running() {
		t.Fatalf("%s runs already", c.Name)
	}
	ctx, cancel := waiting(t)
	defer cancel()
	check(t, "start "+c.Name, c.start(ctx))
}

// Stop ends the server in the fast way: transactions are rolled back, and connected standbys get all that was written.
// It does nothing where the server does not run. A frozen one is to be thawed first.
func (c *Cluster) Stop(t testing.TB) {
	t.Helper()
	if !c.running() {
		return
	}
	ctx, cancel := waiting(t)
	defer cancel()
	check(t, "stop "+c.Name, errors.Join(c.postmaster.signal(syscall.SIGINT), c.postmaster.wait(ctx)))
}

// Kill ends all processes of the server at once, by SIGKILL, frozen ones too, and returns when none is left. It does
// nothing where the server does not run.
func (c *Cluster) Kill() {
	c.t.Helper()
	ctx, cancel := waiting(c.t)
	defer cancel()
	check(c.t, "kill "+c.Name, c.kill(ctx))
}

func (c *Cluster) kill(ctx context.Context) error {
	if !c.running() {
		return nil
	}
	return errors.Join(c.postmaster.signalAll(syscall.SIGKILL), c.postmaster.wait(ctx))
}

// Freeze stops all processes of the server, by SIGSTOP: connections stay open, and nobody answers. It does nothing
// where the server does not run.
func (c *Cluster) Freeze() {
	c.t.Helper()
	c.signalAll(syscall.SIGSTOP)
}

// Thaw lets a frozen server go on.
func (c *Cluster) Thaw() {
	c.t.Helper()
	c.signalAll(syscall.SIGCONT)
}

func (c *Cluster) signalAll(signal syscall.Signal) {
	c.t.Helper()
	if !c.running() {
		return
	}
	check(c.t, signal.String()+" of "+c.Name, c.postmaster.signalAll(signal))
}

// Close ends the server at once and removes all that it has, in whatever state it is. It may be called more than once.
func (c *Cluster) Close() {
	c.t.Helper()
	ctx, cancel := waiting(c.t)
	defer cancel()
	check(c.t, "remove "+c.Name, c.remove(ctx))
}

func (c *Cluster) remove(ctx context.Context) error {
	err := c.kill(ctx)
	c.postmaster = nil
	return errors.Join(err, removeSharedMemory(c.Dir()), c.home.remove())
}

// removeSharedMemory removes the System V segment by which PostgreSQL finds out whether a folder is in use. It outlives
// a server that was killed, until the next start or else until the machine stops.
func removeSharedMemory(data string) error {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the shared memory: %w", err)
	}
	// PostgreSQL's src/include/utils/pidfile.h: the seventh line has the key and the id.
	lines := strings.Split(string(text), "\n")
	if len(lines) < 7 {
		return nil
	}
	_, word, _ := strings.Cut(strings.TrimSpace(lines[6]), " ")
	id, err := strconv.ParseUint(strings.TrimSpace(word), 10, 31)
	if err != nil {
		return nil //nolint:nilerr // The server was killed before it had any.
	}
	const remove = 0 // IPC_RMID
	_, _, errno := syscall.Syscall(syscall.SYS_SHMCTL, uintptr(id), remove, 0)
	if errno != 0 && errno != syscall.EINVAL {
		return fmt.Errorf("remove the shared memory: %w", errno)
	}
	return nil
}

// Log returns what the server has written since it was started last.
func (c *Cluster) Log() string {
	if c.postmaster == nil {
		return ""
	}
	return c.postmaster.output.String()
}
