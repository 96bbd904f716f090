package hostile_test

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

func TestHostileSignalsDrain(t *testing.T) {
	t.Parallel()
	// A process hands on a signal that it ignores, as tests under nohup do, but not one that it is told of.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangups) })
	for _, first := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(first.String(), func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			server := providerdtest.Serve(t, folder)
			begun := providerdtest.BeginCreate(t, server, folder)
			server.Signal(t, first)
			providerdtest.WaitUntil(t, "the server drains", server.IsClosed)
			// A terminal that is closed, or systemd with SendSIGHUP, sends one along with the first signal.
			server.Signal(t, syscall.SIGHUP)
			begun.Finish(t)
			if err := server.Command.Wait(); err != nil {
				t.Errorf("%v: %s", err, server.Stderr)
			}
		})
	}
}

func TestHostileSignalsEndADrain(t *testing.T) {
	t.Parallel()
	for _, second := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		folder := t.TempDir()
		server := providerdtest.Serve(t, folder)
		providerdtest.BeginCreate(t, server, folder)
		server.Signal(t, syscall.SIGTERM)
		providerdtest.WaitUntil(t, "the server drains", server.IsClosed)
		server.Signal(t, second)
		err := server.Command.Wait()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.Sys().(syscall.WaitStatus).Signal() != second {
			t.Errorf("after %v the process ends with %v", second, err)
		}
	}
}

// A server that was started with nohup outlives its terminal.
func TestHostileSignalIgnoredByNohup(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	command := exec.CommandContext(t.Context(), "bash", "-c",
		`trap "" HUP; exec -a providerd "$0" serve --listen 127.0.0.1:0`, os.Args[0])
	command.Dir = folder
	server := providerdtest.ServeCommand(t, command)
	server.Signal(t, syscall.SIGHUP)
	for range 20 {
		providerdtest.BeginCreate(t, server, folder).Finish(t)
	}
	server.MustStop(t)
}
