package commands_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
)

func expectCreates(t *testing.T, server *providerdtest.Server) {
	t.Helper()
	server.Create(t, contracttest.Client(t))
	if status, readiness := providerdtest.Readiness(t, server); status != http.StatusOK {
		t.Errorf("readiness is %d %s", status, readiness)
	}
}

// TestRootBesideServerOfAnotherUser runs commands as root, as an operator of the service does, and the server keeps running.
func TestRootBesideServerOfAnotherUser(t *testing.T) {
	t.Parallel()
	dir := providerdtest.NewOtherUserDir(t)
	server := providerdtest.ServeAsOtherUser(t, dir)
	for _, command := range []string{
		"key rotate", "key reseal", "key retire", "token create --name n --allow all", "token list",
		"application create --slug s --name n", "provider list", "audit", "backup backup.db",
	} {
		expectCreates(t, server)
		providerdtest.RunCommand(t, dir, strings.Fields(command)...)
	}
	expectCreates(t, server)
	providerdtest.ExpectOtherUserOwns(t, dir, "providerd.db", "providerd.db-wal", "keyset.json", "initial-token")
	expectOnly(t, setUpIn(dir), nil)
	info, err := os.Stat(filepath.Join(dir, "backup.db"))
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 || info.Mode() != 0o600 {
		t.Errorf("the backup is %+v, %v", info, err)
	}
}

// TestRootRestoresForAnotherUser restores while no server runs, with and without an existing database.
func TestRootRestoresForAnotherUser(t *testing.T) {
	t.Parallel()
	dir := providerdtest.NewOtherUserDir(t)
	server := providerdtest.ServeAsOtherUser(t, dir)
	expectCreates(t, server)
	providerdtest.RunCommand(t, dir, "backup", "backup.db")
	for _, exists := range []bool{true, false} {
		server.Stop(t)
		if !exists {
			providerdtest.Run(t, "rm", filepath.Join(dir, "data", "providerd.db"))
		}
		providerdtest.RunCommand(t, dir, "restore", "backup.db", "--replace")
		server = providerdtest.ServeAsOtherUser(t, dir)
		expectCreates(t, server)
		providerdtest.ExpectOtherUserOwns(t, dir, "providerd.db", "keyset.json")
		expectOnly(t, setUpIn(dir), nil)
	}
}

// TestRootStartsForAnotherUser creates all files of a database as root, including those of a crash.
func TestRootStartsForAnotherUser(t *testing.T) {
	t.Parallel()
	dir := providerdtest.NewOtherUserDir(t)
	server := providerdtest.Serve(t, dir)
	expectCreates(t, server)
	server.Kill(t)
	providerdtest.ExpectOtherUserOwns(t, dir, "providerd.db", "providerd.db-wal", "providerd.db-shm", "keyset.json", "initial-token")
	expectCreates(t, providerdtest.ServeAsOtherUser(t, dir))
	expectOnly(t, setUpIn(dir), nil)
}

// TestDoctorWithoutPermission runs the doctor as neither root nor the user of the server. It must not report as ok
// what it cannot check.
func TestDoctorWithoutPermission(t *testing.T) {
	t.Parallel()
	dir := providerdtest.NewOtherUserDir(t)
	providerdtest.ServeAsOtherUser(t, dir)
	examined := setUpIn(dir)
	examined.user = providerdtest.ServingUser + 1
	const remedy = "permission denied; run the doctor as the server's user or as root"
	expectOnly(t, examined, []fault{
		{"folder", healthWarn, "data belongs to user 1234, but this is user 1235; run the doctor as the server's user"},
		{"database file", healthFail, "permission denied; run the command as the owner"},
		{"keyset file", healthFail, "permission denied; run the command as the owner"},
		{"initial token", healthFail, "permission denied; run the command as the owner"},
		{"WAL", healthWarn, "^the size of the WAL is unknown: .*" + remedy},
		{"disk space", healthWarn, "but the size of the database is unknown: .*" + remedy},
		{"database", healthFail, "permission denied; run the command as the owner"},
		{"keyset", healthFail, "permission denied; run the command as the owner"},
	})
}
