package command

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/durable/durabletest"
)

// The user that serves, whom no account needs to be of, and their group.
const servingUser, servingGroup = 1234, 2234

// newFolderOfOther is a folder with one for the database that belongs to the user that serves. What only root can do is
// skipped for others.
func newFolderOfOther(t *testing.T) string {
	t.Helper()
	durabletest.DemandRoot(t)
	folder := t.TempDir()
	shell(t, "chmod", "755", filepath.Dir(folder), folder)
	shell(t, "install", "--directory", "--mode=700", "--owner="+strconv.Itoa(servingUser),
		"--group="+strconv.Itoa(servingGroup), filepath.Join(folder, "data"))
	return folder
}

// serveAsOther starts a server of another user in a folder, with a copy of the program that it can reach.
func serveAsOther(t *testing.T, folder string, arguments ...string) *process {
	t.Helper()
	program := filepath.Join(folder, "providerd")
	shell(t, "install", "--mode=755", os.Args[0], program)
	command := newCommand(t.Context(), folder, append([]string{"serve", "--listen", "127.0.0.1:0"}, arguments...)...)
	command.Path = program
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: servingUser, Gid: servingGroup}}
	server := startServer(t, command)
	t.Cleanup(func() { _ = server.kill() })
	return server
}

func expectCreates(t *testing.T, server *process, folder string) {
	t.Helper()
	createOverHTTP(t, contracttest.Client(t), server, folder)
	if status, readiness := readinessOf(t, server); status != http.StatusOK {
		t.Errorf("readiness is %d %s", status, readiness)
	}
}

// expectAllOfOther demands that the folder of the database has nothing but private files of the user that serves.
func expectAllOfOther(t *testing.T, folder string, want ...string) {
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
		durabletest.ExpectOwner(t, filepath.Join(folder, "data", entry.Name()), servingUser, servingGroup)
	}
}

// TestRootBesideServerOfAnotherUser runs commands as root, as an operator of the service does, and the server goes on.
func TestRootBesideServerOfAnotherUser(t *testing.T) {
	t.Parallel()
	folder := newFolderOfOther(t)
	server := serveAsOther(t, folder)
	for _, command := range []string{
		"key rotate", "key reseal", "key retire", "token create --name n --allow all", "token list",
		"application create --slug s --name n", "provider list", "audit", "backup backup.db",
	} {
		expectCreates(t, server, folder)
		operate(t, folder, strings.Fields(command)...)
	}
	expectCreates(t, server, folder)
	expectAllOfOther(t, folder, "providerd.db", "providerd.db-wal", "keyset.json", "initial-token")
	expectOnly(t, setUpIn(folder), nil)
	info, err := os.Stat(filepath.Join(folder, "backup.db"))
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 || info.Mode() != 0o600 {
		t.Errorf("the backup is %+v, %v", info, err)
	}
}

// TestRootRestoresForAnotherUser restores while nobody serves, over a database and where none is.
func TestRootRestoresForAnotherUser(t *testing.T) {
	t.Parallel()
	folder := newFolderOfOther(t)
	server := serveAsOther(t, folder)
	expectCreates(t, server, folder)
	operate(t, folder, "backup", "backup.db")
	for _, isThere := range []bool{true, false} {
		server.end(t)
		if !isThere {
			shell(t, "rm", filepath.Join(folder, "data", "providerd.db"))
		}
		operate(t, folder, "restore", "backup.db", "--replace")
		server = serveAsOther(t, folder)
		expectCreates(t, server, folder)
		expectAllOfOther(t, folder, "providerd.db", "keyset.json")
		expectOnly(t, setUpIn(folder), nil)
	}
}

// TestRootStartsForAnotherUser makes all files of a database as root, those of a crash included.
func TestRootStartsForAnotherUser(t *testing.T) {
	t.Parallel()
	folder := newFolderOfOther(t)
	server := serve(t, folder)
	expectCreates(t, server, folder)
	if err := server.kill(); err != nil {
		t.Fatal(err)
	}
	expectAllOfOther(t, folder, "providerd.db", "providerd.db-wal", "providerd.db-shm", "keyset.json", "initial-token")
	expectCreates(t, serveAsOther(t, folder), folder)
	expectOnly(t, setUpIn(folder), nil)
}

// TestDoctorOfUserWhoCannotLook runs it as neither root nor the user that serves. What it cannot see, it does not call
// right.
func TestDoctorOfUserWhoCannotLook(t *testing.T) {
	t.Parallel()
	folder := newFolderOfOther(t)
	serveAsOther(t, folder)
	examined := setUpIn(folder)
	examined.user = servingUser + 1
	const remedy = "permission denied; run the doctor as the user of the server or as root"
	expectOnly(t, examined, []fault{
		{"folder", healthWarn, "data belongs to user 1234, and this is user 1235; run the doctor as the user of the server"},
		{"database file", healthFail, "permission denied; run this as the user"},
		{"keyset file", healthFail, "permission denied; run this as the user"},
		{"initial token", healthFail, "permission denied; run this as the user"},
		{"WAL", healthWarn, "^its size cannot be told: .*" + remedy},
		{"disk space", healthWarn, "left, and what a copy of the database takes cannot be told: .*" + remedy},
		{"database", healthFail, "permission denied; run this as the user"},
		{"keyset", healthFail, "permission denied; run this as the user"},
	})
}
