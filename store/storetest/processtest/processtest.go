package processtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Timeout is how long anything may take on a busy machine.
const Timeout = 2 * time.Minute

// WaitUntil waits until condition returns true. It fails the test, with what it waited for, after Timeout.
func WaitUntil(t testing.TB, what string, condition func() bool) {
	t.Helper()
	err := Poll(func() error {
		if condition() {
			return nil
		}
		return errors.New("it is still waiting")
	})
	if err != nil {
		t.Fatalf("wait until %s: %v", what, err)
	}
}

// Poll calls condition every 10 ms until it returns nil. It returns the last error after Timeout.
func Poll(condition func() error) error {
	again, end := time.NewTicker(10*time.Millisecond), time.Now().Add(Timeout)
	defer again.Stop()
	for {
		err := condition()
		if err == nil || time.Now().After(end) {
			return err
		}
		<-again.C
	}
}

// Closing returns what was opened, and closes it with the test. It fails the test if it was not opened.
func Closing[T io.Closer](t testing.TB, opened T, err error) T {
	t.Helper()
	Must(t, err)
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened
}

// FreePort returns a port of 127.0.0.1 that is not in use, and that no other test gets until this one ends. It is below
// the range that Linux uses for outgoing connections (ip_local_port_range), in which a client that keeps dialing a dead
// server could get that server's port and connect to itself.
func FreePort(t testing.TB) int {
	t.Helper()
	const first, end = 20000, 32768
	for {
		port := first + rand.IntN(end-first)
		// An abstract socket, which ends with the process: a server may take long to listen on the port.
		reserved, err := net.Listen("unix", fmt.Sprintf("@providerd-test-port-%d", port))
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = reserved.Close() })
		if listener, err := net.Listen("tcp", Local(port)); err == nil {
			_ = listener.Close()
			return port
		}
	}
}

// Local returns the address of a port of 127.0.0.1.
func Local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Buffer is a buffer that is safe for concurrent use.
type Buffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(p)
}

func (b *Buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}

// OverwriteBeginning writes content over the beginning of a file, whose end stays. It returns a file system error.
func OverwriteBeginning(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("overwrite %s: %w", path, err)
	}
	_, err = file.WriteAt(content, 0)
	return errors.Join(err, file.Close())
}

// Need skips the test if missing is not nil. It fails the test instead if NOTHING_LEFT_OUT is set, as in make ci.
// Remedy is the command that brings what is missing, or "".
func Need(t testing.TB, missing error, remedy string) {
	t.Helper()
	if missing == nil {
		return
	}
	message := missing.Error()
	if remedy != "" {
		message += "; run " + remedy
	}
	if os.Getenv("NOTHING_LEFT_OUT") != "" {
		t.Fatal(message)
	}
	t.Skip(message)
}

// NeedPrograms is Need for programs. What brings them is a name in the table of .ci/install.
func NeedPrograms(t testing.TB, name string, programs ...string) {
	t.Helper()
	for _, program := range programs {
		_, err := exec.LookPath(program)
		Need(t, err, ".ci/install "+name)
	}
}

// NeedRoot is Need for tests that must run as root.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Need(t, errors.New("only root can do this"), "")
	}
}

// ExpectOwner checks that a file belongs to a user and a group, and is accessible to its owner only.
func ExpectOwner(t testing.TB, path string, user, group uint32) {
	t.Helper()
	info, err := os.Lstat(path)
	Must(t, err)
	native, ok := info.Sys().(*syscall.Stat_t)
	if !ok || native.Uid != user || native.Gid != group || info.Mode() != 0o600 {
		t.Errorf("%s belongs to %d:%d with %v, want %d:%d", path, native.Uid, native.Gid, info.Mode(), user, group)
	}
}

// ProofSize returns the size of a long proof if "make proof" runs that one, or fallback.
func ProofSize(t testing.TB, proof string, fallback int) int {
	t.Helper()
	if os.Getenv("TEST_PROOF") != proof {
		return fallback
	}
	size, err := strconv.Atoi(os.Getenv("TEST_PROOF_SIZE"))
	if err != nil {
		t.Fatalf("TEST_PROOF_SIZE: %v", err)
	}
	return size
}
