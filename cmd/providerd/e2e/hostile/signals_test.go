package hostile_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

func signalUntilDraining(t *testing.T, server *providerdtest.Server, first syscall.Signal) {
	t.Helper()
	server.Signal(t, first)
	processtest.WaitUntil(t, "the server drains", func() bool {
		connection, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
		if err == nil {
			_ = connection.Close()
		}
		return err != nil
	})
}

// TestSignalsDrain checks that a request in flight finishes, and that the ops listener serves until it has.
func TestSignalsDrain(t *testing.T) {
	t.Parallel()
	// Ignored signals are inherited, as by tests under nohup, but caught ones are not.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangups) })
	for _, first := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(first.String(), func(t *testing.T) {
			t.Parallel()
			command := providerdtest.ServeCommand(context.WithoutCancel(t.Context()), t.TempDir(), "--ops-listen", "127.0.0.1:0")
			giveTerminal(t, command)
			server := providerdtest.MustStart(t, command)
			ops := providerdtest.OpsURL(t, server)
			pending := beginCreate(t, server)
			signalUntilDraining(t, server, first)
			for _, path := range []string{"/metrics", "/healthz"} {
				status, text := providerdtest.Get(t, ops+path)
				processtest.Expect(t, status == http.StatusOK, "%s: status is %d: %s", path, status, text)
			}
			// A closed terminal, or systemd with SendSIGHUP, also sends SIGHUP.
			server.Signal(t, syscall.SIGHUP)
			expectStatus(t, pending, providerdtest.OAuth2Body, http.StatusCreated)
			err := server.Wait()
			processtest.Expect(t, err == nil, "%v: %s", err, server.Stderr)
		})
	}
}

func TestSecondSignalStops(t *testing.T) {
	t.Parallel()
	for _, second := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		server := providerdtest.Serve(t, t.TempDir())
		beginCreate(t, server)
		signalUntilDraining(t, server, syscall.SIGTERM)
		server.Signal(t, second)
		err := server.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != second {
			t.Errorf("after %v the exit is %v", second, err)
		}
	}
}

func giveTerminal(t *testing.T, command *exec.Cmd) {
	t.Helper()
	master := processtest.Try(os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)).Must(t)
	t.Cleanup(func() { _ = master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	processtest.Must(t, err, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	terminal := processtest.Try(os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)).Must(t)
	t.Cleanup(func() { _ = terminal.Close() })
	const firstExtra = 3
	command.ExtraFiles = []*os.File{terminal}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: firstExtra}
}

// TestHangup checks that a server with nohup outlives its terminal, and that a hangup without a terminal does nothing.
func TestHangup(t *testing.T) {
	t.Parallel()
	for name, trap := range map[string]string{"nohup": `trap "" HUP; `, "no terminal": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), "bash", "-c", trap+`exec -a providerd "$0" serve --listen 127.0.0.1:0`, os.Args[0])
			command.Dir = t.TempDir()
			if trap == "" {
				command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			} else {
				giveTerminal(t, command)
			}
			server := providerdtest.MustStart(t, command)
			server.Signal(t, syscall.SIGHUP)
			for range 20 {
				expectStatus(t, beginCreate(t, server), providerdtest.OAuth2Body, http.StatusCreated)
			}
			server.Stop(t)
		})
	}
}
