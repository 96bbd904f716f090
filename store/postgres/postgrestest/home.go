package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// findBinaries returns the directory of the programs of the newest installed PostgreSQL server.
func findBinaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("no PostgreSQL server is installed; run make postgres, or apt-get install postgresql")
	}
	return filepath.Dir(slices.Max(found)), nil
}

// home is the temporary directory of a server and the user that it runs as.
type home struct {
	dir string
	// account is nil if the server can run as the test's user, which is not root.
	account *syscall.Credential
	// environment has variables in addition to those of every home.
	environment []string
}

// compileLocale compiles a locale such as de_DE.UTF-8, which may not be installed, for the programs that run in the
// home. It does nothing for "".
func (h *home) compileLocale(ctx context.Context, locale string) error {
	if locale == "" {
		return nil
	}
	dir := filepath.Join(h.dir, "locales")
	if err := errors.Join(os.Mkdir(dir, 0o700), h.own(dir)); err != nil {
		return err
	}
	h.environment = append(h.environment, "LOCPATH="+dir+":/usr/lib/locale")
	language, charset, _ := strings.Cut(locale, ".")
	return h.run(ctx, "localedef", "--inputfile", language, "--charmap", charset, filepath.Join(dir, locale))
}

func newHome() (home, error) {
	account, err := unprivileged()
	if err != nil {
		return home{}, err
	}
	dir, err := os.MkdirTemp("", "postgrestest-")
	if err != nil {
		return home{}, err
	}
	h := home{dir: dir, account: account}
	if err := h.own(dir); err != nil {
		return home{}, errors.Join(err, h.remove())
	}
	return h, nil
}

// unprivileged returns a user that servers accept, or nil if that of this process is one.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	found, err := user.Lookup("postgres")
	if err != nil {
		found, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("find a user for servers, which refuse root: %w", err)
	}
	uid, uidErr := strconv.ParseUint(found.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(found.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(uidErr, gidErr)
}

// own makes the user of the server the owner of a path.
func (h home) own(path string) error {
	if h.account == nil {
		return nil
	}
	return os.Chown(path, int(h.account.Uid), int(h.account.Gid))
}

// write appends text to a file, which it creates if it does not exist.
func (h home) write(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close(), h.own(path))
}

func (h home) remove() error { return os.RemoveAll(h.dir) }

// run runs a program and waits for it.
func (h home) run(ctx context.Context, program string, arguments ...string) error {
	running, err := start(h.command(ctx, syscall.SIGKILL, program, arguments...))
	if err != nil {
		return err
	}
	<-running.done
	if running.command.ProcessState.Success() {
		return nil
	}
	return running.failure()
}

// start starts a server that receives the signal when the test's process ends.
func (h home) start(atDeath syscall.Signal, program string, arguments ...string) (*process, error) {
	return start(h.command(context.Background(), atDeath, program, arguments...))
}

// command returns a command that runs a program in the directory as its user, in English, and without variables of the
// environment that would affect PostgreSQL.
func (h home) command(ctx context.Context, atDeath syscall.Signal, program string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = h.dir
	command.Env = append([]string{"HOME=" + h.dir, "LC_ALL=C", "TZ=UTC", "PATH=" + os.Getenv("PATH")}, h.environment...)
	// In its own process group, the kernel wakes a frozen server when the test's process ends, so that it gets the signal.
	command.SysProcAttr = &syscall.SysProcAttr{Credential: h.account, Setpgid: true, Pdeathsig: atDeath}
	return command
}
