// Package durabletest helps tests of files to check whom a file belongs to, and to start other programs that use it.
// It writes no files; store/durable does.
//
// Start with ExpectOwner here, and with Process in process.go.
package durabletest

import (
	"os"
	"syscall"
	"testing"
)

// RequireRoot skips a test of what only root can do.
func RequireRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to other users")
	}
}

// ExpectOwner fails the test where a file belongs to others than a user and a group, or its owner is not alone to read
// it.
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
