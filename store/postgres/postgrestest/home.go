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

// findBinaries returns the folder of the programs of the newest PostgreSQL server on this machine.
func findBinaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("there is no PostgreSQL server here: run make postgres, or apt-get install postgresql")
	}
	return filepath.Dir(slices.Max(found)), nil
}

// home is the temporary folder of a server, and of the user that it runs as.
type home struct {
	folder string
	// account is nil where the test's own user will do: servers refuse root.
	account *syscall.Credential
	// environment is what the programs get beside that of every home.
	environment []string
}

// compileLocale compiles a locale such as de_DE.UTF-8, which the machine may lack, for the programs that run in the
// home. It does nothing for "".
func (h *home) compileLocale(ctx context.Context, locale string) error {
	if locale == "" {
		return nil
	}
	folder := filepath.Join(h.folder, "locales")
	if err := errors.Join(os.Mkdir(folder, 0o700), h.own(folder)); err != nil {
		return err
	}
	h.environment = append(h.environment, "LOCPATH="+folder+":/usr/lib/locale")
	language, charset, _ := strings.Cut(locale, ".")
	return h.run(ctx, "localedef", "--inputfile", language, "--charmap", charset, filepath.Join(folder, locale))
}

func newHome() (home, error) {
	account, err := unprivileged()
	if err != nil {
		return home{}, err
	}
	folder, err := os.MkdirTemp("", "postgrestest-")
	if err != nil {
		return home{}, err
	}
	h := home{folder: folder, account: account}
	if err := h.own(folder); err != nil {
		return home{}, errors.Join(err, h.remove())
	}
	return h, nil
}

// unprivileged returns a user that servers accept, or nil where this process has one.
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

// own gives a path to the user of the servers.
func (h home) own(path string) error {
	if h.account == nil {
		return nil
	}
	return os.Chown(path, int(h.account.Uid), int(h.account.Gid))
}

// write adds text to a file, which it makes where there is none.
func (h home) write(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close(), h.own(path))
}

func (h home) remove() error { return os.RemoveAll(h.folder) }

// run runs a program to its end.
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

// start starts a server, which gets the signal when the test's process ends.
func (h home) start(atDeath syscall.Signal, program string, arguments ...string) (*process, error) {
	return start(h.command(context.Background(), atDeath, program, arguments...))
}

// command is a program that runs in the folder as its user, in English, and with nothing of the environment that
// would change what PostgreSQL does.
func (h home) command(ctx context.Context, atDeath syscall.Signal, program string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = h.folder
	command.Env = append([]string{"HOME=" + h.folder, "LC_ALL=C", "TZ=UTC", "PATH=" + os.Getenv("PATH")}, h.environment...)
	// In a group of its own, a frozen server is woken by the kernel when the test's process ends, and so gets its signal.
	command.SysProcAttr = &syscall.SysProcAttr{Credential: h.account, Setpgid: true, Pdeathsig: atDeath}
	return command
}
