package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
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
		s.account = unprivileged(t)
	}
	s.own(dir)
	return s
}

// unprivileged returns the user postgres, or nobody if there is none: servers refuse root.
func unprivileged(t testing.TB) *syscall.Credential {
	t.Helper()
	found, err := user.Lookup("postgres")
	if err != nil {
		found, err = user.Lookup("nobody")
	}
	processtest.Must(t, err)
	uid, uidErr := strconv.ParseUint(found.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(found.Gid, 10, 32)
	processtest.Must(t, uidErr, gidErr)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
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

// signal sends a signal to all processes of the server, if it runs.
func (s *Server) signal(signal syscall.Signal) {
	if s.IsRunning() {
		SignalTree(s.child.Command.Process.Pid, signal)
	}
}

// Kill sends SIGKILL to all processes of the server, even if they are frozen, and returns when none is left.
func (s *Server) Kill() {
	s.t.Helper()
	if s.IsRunning() {
		s.signal(syscall.SIGKILL)
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
	s.removeSharedMemory()
	processtest.Must(s.t, os.RemoveAll(s.dir))
}

// PIDFile returns the lines of the PID file of PostgreSQL: PostgreSQL's src/include/utils/pidfile.h. Those that it does
// not have yet are empty.
func (s *Server) PIDFile() []string {
	text, _ := os.ReadFile(s.Path("data/postmaster.pid"))
	return append(strings.Split(string(text), "\n"), make([]string, 8)...)
}

// removeSharedMemory removes the System V segment that tells PostgreSQL that a data directory is in use. After a
// kill, it remains until the next start of the server or a reboot.
func (s *Server) removeSharedMemory() {
	const remove = 0 // IPC_RMID
	var key, id uintptr
	if _, err := fmt.Sscan(s.PIDFile()[6], &key, &id); err == nil {
		_, _, _ = syscall.Syscall(syscall.SYS_SHMCTL, id, remove, 0)
	}
}

// SignalTree sends a signal to the children of a program, then to the program itself. Each process of PostgreSQL is in
// its own process group, so a signal to the group would not reach them.
func SignalTree(id int, signal syscall.Signal) {
	// Once it is stopped, it starts no children, and their process IDs cannot be reused.
	_ = syscall.Kill(id, syscall.SIGSTOP)
	_ = processtest.Poll(func() error {
		// The file is gone, or the state is Z, if the process has ended.
		if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id)); regexp.MustCompile(`\) [RSD] `).Match(text) {
			return errors.New("it still runs")
		}
		return nil
	})
	paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", id))
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				_ = syscall.Kill(child, signal)
			}
		}
	}
	_ = syscall.Kill(id, signal)
}
