package commands_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// servingUser and servingGroup run the server. They need no account.
const servingUser, servingGroup = 1234, 2234

// newOtherUserDir returns a new directory with a subdirectory data that servingUser owns. The test needs root.
func newOtherUserDir(t *testing.T) string {
	t.Helper()
	processtest.NeedRoot(t)
	dir := t.TempDir()
	const prepare = "chmod 755 .. .; install --directory --mode=700 --owner=%d --group=%d data"
	providerdtest.RunShell(t, dir, fmt.Sprintf(prepare, servingUser, servingGroup))
	return dir
}

// serveAsOtherUser starts a server as servingUser, from a copy of the program that this user can read.
func serveAsOtherUser(t *testing.T, dir string, arguments ...string) *providerdtest.Server {
	t.Helper()
	command := providerdtest.ServeCommand(t.Context(), dir, arguments...)
	command.Path = filepath.Join(dir, "providerd")
	providerdtest.Run(t, "install", "--mode=755", os.Args[0], command.Path)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: servingUser, Gid: servingGroup}}
	return providerdtest.MustStart(t, command)
}

// expectOtherUserOwns checks that dir/data has the files in want, and that all its files are private to servingUser.
func expectOtherUserOwns(t *testing.T, dir string, want ...string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "data", "*"))
	processtest.Must(t, err)
	for _, name := range want {
		paths = append(paths, filepath.Join(dir, "data", name))
	}
	for _, path := range paths {
		processtest.ExpectOwner(t, path, servingUser, servingGroup)
	}
}

func expectCreates(t *testing.T, server *providerdtest.Server) {
	t.Helper()
	server.Create(t, contracttest.Client(t))
	server.ExpectReadiness(t, "ready")
}

// TestRootBesideServerOfAnotherUser runs commands as root, as an operator of the service does, and the server keeps running.
func TestRootBesideServerOfAnotherUser(t *testing.T) {
	t.Parallel()
	dir := newOtherUserDir(t)
	server := serveAsOtherUser(t, dir)
	for _, command := range []string{
		"key rotate", "key reseal", "key rewrap", "token create --name n --allow all", "token list",
		"application create s --name n", "provider list", "audit", "backup backup.db",
	} {
		expectCreates(t, server)
		providerdtest.RunCommand(t, dir, strings.Fields(command)...)
	}
	expectCreates(t, server)
	expectOtherUserOwns(t, dir, "providerd.db", "providerd.db-wal", "keyset.json", "initial-token")
	expectOnly(t, setUp{dir: dir})
	info, err := os.Stat(filepath.Join(dir, "backup.db"))
	processtest.Expect(t, err == nil && info.Sys().(*syscall.Stat_t).Uid == 0 && info.Mode() == 0o600,
		"the backup is %+v, %v", info, err)
}

// TestRootRestoresForAnotherUser restores while no server runs, with and without an existing database.
func TestRootRestoresForAnotherUser(t *testing.T) {
	t.Parallel()
	dir := newOtherUserDir(t)
	server := serveAsOtherUser(t, dir)
	expectCreates(t, server)
	providerdtest.RunCommand(t, dir, "backup", "backup.db")
	for _, exists := range []bool{true, false} {
		server.Stop(t)
		if !exists {
			providerdtest.Run(t, "rm", filepath.Join(dir, "data", "providerd.db"))
		}
		providerdtest.RunCommand(t, dir, "restore", "backup.db", "--replace")
		server = serveAsOtherUser(t, dir)
		expectCreates(t, server)
		expectOtherUserOwns(t, dir, "providerd.db", "keyset.json")
		expectOnly(t, setUp{dir: dir})
	}
}

// TestRootStartsForAnotherUser creates all files of a database as root, including those of a crash.
func TestRootStartsForAnotherUser(t *testing.T) {
	t.Parallel()
	dir := newOtherUserDir(t)
	server := providerdtest.Serve(t, dir)
	expectCreates(t, server)
	server.Kill(t)
	expectOtherUserOwns(t, dir, "providerd.db", "providerd.db-wal", "providerd.db-shm", "keyset.json", "initial-token")
	expectCreates(t, serveAsOtherUser(t, dir))
	expectOnly(t, setUp{dir: dir})
}

// TestBackupOfAnotherUser lists a backup that this user can read, in a directory that it cannot write.
func TestBackupOfAnotherUser(t *testing.T) {
	t.Parallel()
	dir := newOtherUserDir(t)
	providerdtest.Serve(t, dir).Stop(t)
	providerdtest.RunCommand(t, dir, "backup", "backup.db")
	providerdtest.RunShell(t, dir, fmt.Sprintf("chmod 644 backup.db; install --mode=600 --owner=%d data/keyset.json keyset.json", servingUser))
	list := providerdtest.Command(t.Context(), dir, "provider", "list", "--database", "sqlite:backup.db", "--keyset", "keyset.json")
	list.Path = filepath.Join(dir, "providerd")
	providerdtest.Run(t, "install", "--mode=755", os.Args[0], list.Path)
	list.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: servingUser, Gid: servingGroup}}
	providerdtest.ExpectExit(t, list, providerdtest.ExitFailed, "attempt to write a readonly database; "+
		"make the file and its directory writable for this user, or copy the file to a directory of its own")
}

// TestDoctorWithoutPermission runs the doctor as neither root nor the user of the server. It must not report as ok
// what it cannot check.
func TestDoctorWithoutPermission(t *testing.T) {
	t.Parallel()
	dir := newOtherUserDir(t)
	serveAsOtherUser(t, dir)
	examined := setUp{dir: dir, user: servingUser + 1}
	const denied = ".*: permission denied; run the command as the owner, or give this user access to it and its directory"
	expectOnly(t, examined,
		warns("directory", "data belongs to user 1234, but this is user 1235; run the doctor as the server's user, or, if that is this one, chown -R 1235 data"),
		fails("database file", denied),
		fails("keyset file", denied),
		fails("initial token", denied),
		warns("disk space", "cannot determine the free space on the disk of data, or the size of the database: "+
			"stat data/providerd.db: permission denied; run the doctor as the server's user or as root"),
		fails("database", denied),
		fails("keyset", denied))
}

// TestCertificateInstalledByRoot installs a certificate in two steps, as install(1) does: the files first belong to
// root, and the change of owner does not change their modification time.
func TestCertificateInstalledByRoot(t *testing.T) {
	t.Parallel()
	dir, next := newOtherUserDir(t), t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	owner := strconv.Itoa(servingUser)
	providerdtest.WriteCertificate(t, dir, 1)
	providerdtest.Run(t, "chown", owner, cert, key)
	server := serveAsOtherUser(t, dir, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	address := strings.TrimPrefix(server.URL, "https://")

	providerdtest.WriteCertificate(t, next, 2)
	providerdtest.Run(t, "install", "--mode=600", filepath.Join(next, "cert.pem"), filepath.Join(next, "key.pem"), dir)
	for range 2 {
		if serial := providerdtest.ServedSerial(t, address); serial != 1 {
			t.Errorf("certificate %d is served while root owns the files, want 1", serial)
		}
	}
	providerdtest.Run(t, "chown", owner, cert, key)
	processtest.WaitUntil(t, "the new certificate is served", func() bool { return providerdtest.ServedSerial(t, address) == 2 })
	server.Stop(t)
	const problem, reason = "cannot load certificate", "cert.pem: permission denied"
	if log := server.Stderr.String(); strings.Count(log, problem) != 1 || strings.Count(log, reason) != 1 {
		t.Errorf("%q is not logged once: %s", reason, log)
	}
}
