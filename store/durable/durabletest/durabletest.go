// Package durabletest helps tests check who owns a file, and run other programs that use it.
//
// Start with ExpectOwner and Process.
package durabletest

import (
	"os"
	"syscall"
	"testing"
)

// RequireRoot skips a test that only root can run.
func RequireRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to other users")
	}
}

// ExpectOwner fails the test unless a file belongs to a user and a group and is accessible to its owner only.
func ExpectOwner(t *testing.T, path string, user, group uint32) {
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
