package processtest

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
)

// Need skips the test if missing is not nil. It fails the test instead if NOTHING_LEFT_OUT is set, as in make ci.
// Remedy is the command that brings what is missing, or "".
func Need(t testing.TB, missing error, remedy string) {
	t.Helper()
	if missing == nil {
		return
	}
	hint := ""
	if remedy != "" {
		hint = "; run " + remedy
	}
	if os.Getenv("NOTHING_LEFT_OUT") != "" {
		t.Fatalf("%v%s", missing, hint)
	}
	t.Skipf("%v%s", missing, hint)
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
	if err != nil {
		t.Fatal(err)
	}
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
