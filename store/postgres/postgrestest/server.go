package postgrestest

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// Server is a program with a temporary directory, which runs as a user other than root.
type Server struct {
	t   testing.TB
	dir string
	// account is nil if the server can run as the test's user.
	account *syscall.Credential
	// environment has variables in addition to the ones of every server.
	environment []string
	child       *processtest.Child
}

// NewServer returns a server that is closed with the test. It is not yet started.
func NewServer(t testing.TB) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "postgrestest-") //nolint:usetesting // The path of a socket must be short, and its user may enter.
	processtest.Must(t, err)
	s := &Server{t: t, dir: dir}
	t.Cleanup(s.Close)
	if os.Geteuid() == 0 {
		// Servers refuse root.
		found, err := user.Lookup("postgres")
		if err != nil {
			found, err = user.Lookup("nobody")
		}
		processtest.Must(t, err)
		s.account = &syscall.Credential{}
		processtest.Try(fmt.Sscan(found.Uid+" "+found.Gid, &s.account.Uid, &s.account.Gid)).Must(t)
	}
	s.own(dir)
	return s
}

// Path returns the path of a file in the directory.
func (s *Server) Path(name string) string { return filepath.Join(s.dir, name) }

// own makes the user of the server the owner of a path.
func (s *Server) own(path string) {
	if s.account != nil {
		processtest.Must(s.t, os.Chown(path, int(s.account.Uid), int(s.account.Gid)))
	}
}

// Write appends text to a file, which it creates if it does not exist.
func (s *Server) Write(name, text string) {
	file, err := os.OpenFile(s.Path(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	processtest.Must(s.t, err)
	_, err = file.WriteString(text)
	processtest.Must(s.t, err, file.Close())
	s.own(s.Path(name))
}

// Command returns a command that runs a program in the directory as its user, in English, and without variables of the
// environment that would affect PostgreSQL.
func (s *Server) Command(program string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(context.WithoutCancel(s.t.Context()), program, arguments...)
	command.Dir = s.dir
	command.Env = append([]string{"HOME=" + s.dir, "LC_ALL=C", "TZ=UTC", "PATH=" + os.Getenv("PATH")}, s.environment...)
	// In its own process group, the kernel wakes a frozen server when the test's process ends, so that it receives the
	// signal.
	command.SysProcAttr = &syscall.SysProcAttr{Credential: s.account, Setpgid: true}
	return command
}

// Launch starts the program and waits until it is ready.
func (s *Server) Launch(command *exec.Cmd, ready func() error) {
	s.t.Helper()
	var err error
	s.child, err = processtest.Start(command)
	if err != nil {
		s.t.Fatalf("start a server; if it is missing, run .ci/install postgres patroni: %v", err)
	}
	err = processtest.Poll(func() error {
		if s.child.HasEnded() {
			s.t.Fatalf("%v ended: %s", command.Args, s.Log())
		}
		return ready()
	})
	processtest.Must(s.t, err)
}

// Log returns the output of the server since its last start.
func (s *Server) Log() string { return s.child.Stderr.String() }

// IsRunning reports whether any process of the server is left.
func (s *Server) IsRunning() bool { return s.child != nil && !s.child.HasEnded() }

// signal sends a signal to all processes of the server, if it runs, and returns their ids.
func (s *Server) signal(signal syscall.Signal) (ids []int) {
	if s.IsRunning() {
		ids = SignalTree(s.child.Command.Process.Pid, signal)
	}
	return ids
}

// Kill sends SIGKILL to all processes of the server, even if they are frozen, and returns when none is left.
func (s *Server) Kill() {
	s.t.Helper()
	for _, id := range s.signal(syscall.SIGKILL) {
		// A process closes its output before its connections.
		processtest.Must(s.t, awaitState(id, "ZX"))
	}
	if s.child != nil {
		if err := s.child.Wait(); s.IsRunning() {
			s.t.Fatal(err)
		}
	}
}

// Freeze sends SIGSTOP to all processes of the server: connections stay open without a response.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw resumes a frozen server.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

// Close kills the server in any state, and removes its files. It may be called more than once.
func (s *Server) Close() {
	s.t.Helper()
	s.Kill()
	// After a kill, the System V segment that tells PostgreSQL that a data directory is in use would remain until the next
	// start of the server or a reboot.
	var key, id uintptr
	if _, err := fmt.Sscan(s.PIDFile()[6], &key, &id); err == nil {
		_, _, _ = syscall.Syscall(syscall.SYS_SHMCTL, id, 0 /* IPC_RMID */, 0)
	}
	processtest.Must(s.t, os.RemoveAll(s.dir))
}

// PIDFile returns the lines of the PID file of PostgreSQL: PostgreSQL's src/include/utils/pidfile.h. Those that it does
// not have yet are empty.
func (s *Server) PIDFile() []string {
	text, _ := os.ReadFile(s.Path("data/postmaster.pid"))
	return append(strings.Split(string(text), "\n"), make([]string, 8)...)
}

// SignalTree sends a signal to the children of a program, then to the program itself, and returns their process IDs.
// Each process of PostgreSQL is in its own process group, so a signal to the group would not reach them.
func SignalTree(id int, signal syscall.Signal) (ids []int) {
	// Once it is stopped, it starts no children, and their process IDs cannot be reused.
	_ = syscall.Kill(id, syscall.SIGSTOP)
	_ = awaitState(id, "TtZX")
	paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", id))
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				_ = syscall.Kill(child, signal)
				ids = append(ids, child)
			}
		}
	}
	_ = syscall.Kill(id, signal)
	return append(ids, id)
}

// awaitState waits until a process has one of the states of proc_pid_stat(5), or is gone.
func awaitState(id int, states string) error {
	return processtest.Poll(func() error {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
		if state := regexp.MustCompile(`\) (\w) `).FindSubmatch(text); state != nil && !strings.Contains(states, string(state[1])) {
			return fmt.Errorf("process %d still has the state %s", id, state[1])
		}
		return nil
	})
}

// ProgramsVariable is the environment variable with the directory of the programs of another PostgreSQL than Debian's,
// which need not have the client programs.
const ProgramsVariable = "TEST_POSTGRESQL"

// newest chooses Debian's newest server once, and puts its directory first in PATH: Debian would choose the newest of
// each program, and a newer version may have clients only. It returns "" if there is none.
var newest = sync.OnceValue(func() (programs string) { //nolint:gochecknoglobals // PATH is one, too.
	found, _ := filepath.Glob("/usr/lib/postgresql/[1-9][0-9]/bin/initdb")
	if len(found) == 0 {
		return ""
	}
	programs = filepath.Dir(slices.Max(found))
	_ = os.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	return programs
})

// Programs returns the directory of the PostgreSQL server's programs, which the path leads to from then on.
func Programs(t testing.TB) string {
	t.Helper()
	debian := newest()
	chosen := cmp.Or(os.Getenv(ProgramsVariable), debian)
	processtest.Require(t, chosen != "", "no PostgreSQL server is installed; run .ci/install postgres")
	return chosen
}

// Binary returns the path of a program of the PostgreSQL server.
func Binary(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(Programs(t), name)
}

// DatabaseURL returns the URL of a database on a server without TLS.
func DatabaseURL(password, address, database string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", superuser, password, address, database)
}

// randomName returns a unique SQL identifier in lower case.
func randomName() string { return strings.ToLower(rand.Text()) }

// NewPgBouncer starts a PgBouncer that pools the connections of a cluster in transaction mode: each transaction may get
// another session of the server. It has up to 1,000 clients, and 20 sessions per database. At 100 sessions it closes
// idle ones of other databases, which it would keep for ten minutes. It is closed with the test. urlOf returns the URL
// of a database through it.
func NewPgBouncer(t testing.TB, cluster *Cluster, settings ...string) (urlOf func(database string) string) {
	t.Helper()
	port := processtest.FreePort(t)
	address, b := processtest.Local(port), NewServer(t)
	b.Write("users", fmt.Sprintf("%q %q\n", superuser, cluster.Password))
	b.Write("settings", fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = users
pool_mode = transaction
default_pool_size = 20
max_user_connections = 100
max_client_conn = 1000
%s
`, cluster.port, port, strings.Join(settings, "\n")))
	b.Launch(b.Command("/usr/sbin/pgbouncer", "settings"), func() error {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	})
	return func(database string) string {
		return DatabaseURL(cluster.Password, address, database) + "&default_query_exec_mode=exec"
	}
}
