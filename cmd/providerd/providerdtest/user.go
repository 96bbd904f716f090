package providerdtest

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"example.com/providerd/store/durable/durabletest"
)

// ServingUser serves in tests of several users, and is of servingGroup. No account needs to be of them.
const ServingUser, servingGroup = 1234, 2234

// NewOtherUserDir is a folder with one for the database that belongs to the user that serves. What only root can do is
// skipped for others.
func NewOtherUserDir(t *testing.T) string {
	t.Helper()
	NeedRoot(t)
	folder := t.TempDir()
	Run(t, "chmod", "755", filepath.Dir(folder), folder)
	Run(t, "install", "--directory", "--mode=700", "--owner="+strconv.Itoa(ServingUser),
		"--group="+strconv.Itoa(servingGroup), filepath.Join(folder, "data"))
	return folder
}

// ServeAsOtherUser starts a server of another user in a folder, with a copy of the program that it can reach.
func ServeAsOtherUser(t *testing.T, folder string, arguments ...string) *Server {
	t.Helper()
	program := filepath.Join(folder, "providerd")
	Run(t, "install", "--mode=755", os.Args[0], program)
	command := Command(t.Context(), folder, append([]string{"serve", "--listen", "127.0.0.1:0"}, arguments...)...)
	command.Path = program
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ServingUser, Gid: servingGroup}}
	server := ServeCommand(t, command)
	t.Cleanup(func() { _ = server.Kill() })
	return server
}

// ExpectOtherUserOwns demands that the folder of the database has nothing but private files of the user that serves.
func ExpectOtherUserOwns(t *testing.T, folder string, want ...string) {
	t.Helper()
	for _, name := range want {
		if _, err := os.Stat(filepath.Join(folder, "data", name)); err != nil {
			t.Error(err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(folder, "data"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		durabletest.ExpectOwner(t, filepath.Join(folder, "data", entry.Name()), ServingUser, servingGroup)
	}
}
