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

// startOnFreePort starts the server for the first time and chooses its port.
func (c *Cluster) startOnFreePort(ctx context.Context) error {
	if err := c.home.compileLocale(ctx, c.locale); err != nil {
		return err
	}
	return onFreePort(func(port int) error {
		c.port = port
		return c.start(ctx)
	})
}

// start starts the server and returns once it accepts connections.
func (c *Cluster) start(ctx context.Context) error {
	// With mmap, shared memory is a file in the directory, and is removed with it however the server ends.
	postmaster, err := c.home.start(syscall.SIGQUIT, c.program("postgres"), "-D", c.Dir(), "-p", strconv.Itoa(c.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "cluster_name="+c.Name,
		"-c", "dynamic_shared_memory_type=mmap")
	if err != nil {
		return err
	}
	c.postmaster = postmaster
	return postmaster.awaitReady(ctx, c.URL(ownDatabase), c.Name)
}

// running reports whether any process of the server is left.
func (c *Cluster) running() bool {
	return c.postmaster != nil && !c.postmaster.ended()
}

// Start restarts the server on the same port and returns once it accepts connections. A killed server recovers first.
func (c *Cluster) Start(t testing.TB) {
	t.Helper()
	if c.running() {
		t.Fatalf("%s is already running", c.Name)
	}
	ctx, cancel := waiting(t)
	defer cancel()
	check(t, "start "+c.Name, c.start(ctx))
}

// Stop shuts the server down in fast mode: it rolls transactions back and sends connected standbys all WAL. Stop does
// nothing if the server does not run. A frozen server must be thawed first.
func (c *Cluster) Stop(t testing.TB) {
	t.Helper()
	if !c.running() {
		return
	}
	ctx, cancel := waiting(t)
	defer cancel()
	check(t, "stop "+c.Name, errors.Join(c.postmaster.signal(syscall.SIGINT), c.postmaster.wait(ctx)))
}

// Kill sends SIGKILL to all processes of the server, even if they are frozen, and returns when none is left. It does
// nothing if the server does not run.
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

// Freeze sends SIGSTOP to all processes of the server: connections stay open without a response. It does nothing if the
// server does not run.
func (c *Cluster) Freeze() {
	c.t.Helper()
	c.signalAll(syscall.SIGSTOP)
}

// Thaw resumes a frozen server.
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

// Close kills the server, whatever its state, and removes its files. It may be called more than once.
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

// removeSharedMemory removes the System V segment that tells PostgreSQL that a data directory is in use. After a
// kill, it remains until the next start of the server or a reboot.
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
		return nil //nolint:nilerr // The server was killed before it created the segment.
	}
	const remove = 0 // IPC_RMID
	_, _, errno := syscall.Syscall(syscall.SYS_SHMCTL, uintptr(id), remove, 0)
	if errno != 0 && errno != syscall.EINVAL {
		return fmt.Errorf("remove the shared memory: %w", errno)
	}
	return nil
}

// Log returns the output of the server since its last start.
func (c *Cluster) Log() string {
	if c.postmaster == nil {
		return ""
	}
	return c.postmaster.output.String()
}
