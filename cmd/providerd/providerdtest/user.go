package providerdtest

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// ServingUser and servingGroup run the server in tests with several users. They need no account.
const ServingUser, servingGroup = 1234, 2234

// NewOtherUserDir returns a new directory with a subdirectory data that ServingUser owns. The test needs root.
func NewOtherUserDir(t *testing.T) string {
	t.Helper()
	processtest.NeedRoot(t)
	dir := t.TempDir()
	Run(t, "chmod", "755", filepath.Dir(dir), dir)
	Run(t, "install", "--directory", "--mode=700", "--owner="+strconv.Itoa(ServingUser),
		"--group="+strconv.Itoa(servingGroup), filepath.Join(dir, "data"))
	return dir
}

// ServeAsOtherUser starts a server as ServingUser, from a copy of the program that this user can read.
func ServeAsOtherUser(t *testing.T, dir string, arguments ...string) *Server {
	t.Helper()
	program := filepath.Join(dir, "providerd")
	Run(t, "install", "--mode=755", os.Args[0], program)
	command := ServeCommand(t.Context(), dir, arguments...)
	command.Path = program
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ServingUser, Gid: servingGroup}}
	return MustStart(t, command)
}

// ExpectOtherUserOwns checks that dir/data has the files in want, and that all its files are private to ServingUser.
func ExpectOtherUserOwns(t *testing.T, dir string, want ...string) {
	t.Helper()
	for _, name := range want {
		if _, err := os.Stat(filepath.Join(dir, "data", name)); err != nil {
			t.Error(err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		processtest.ExpectOwner(t, filepath.Join(dir, "data", entry.Name()), ServingUser, servingGroup)
	}
}
