package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// begunCreate is a create that the server works on, and that waits for its body.
type begunCreate struct {
	net.Conn
	answers *bufio.Reader
}

// beginCreate sends the header of a create, and waits until the server asks for the body.
func beginCreate(t *testing.T, server *process, folder string) *begunCreate {
	t.Helper()
	connection := dial(t, server)
	text := createHeader(t, folder, len(oauth2Body)) + "Expect: 100-continue\r\n\r\n"
	if _, err := io.WriteString(connection, text); err != nil {
		t.Fatal(err)
	}
	begun := &begunCreate{Conn: connection, answers: bufio.NewReader(connection)}
	if response := begun.answer(t); response.StatusCode != http.StatusContinue {
		t.Fatalf("status is %d", response.StatusCode)
	}
	return begun
}

func (b *begunCreate) answer(t *testing.T) *http.Response {
	t.Helper()
	response, err := http.ReadResponse(b.answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response
}

// finish sends the body, which must be answered with the record.
func (b *begunCreate) finish(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(b, oauth2Body); err != nil {
		t.Fatal(err)
	}
	if response := b.answer(t); response.StatusCode != http.StatusCreated {
		t.Errorf("status is %d", response.StatusCode)
	}
}

// dial connects to the server, for as long as the test runs and at most readyTimeout.
func dial(t *testing.T, server *process) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(server.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(readyTimeout)); err != nil {
		t.Fatal(err)
	}
	return connection
}

// createHeader is the header of a create with the token in the file initial-token, ready for more fields.
func createHeader(t *testing.T, folder string, length int) string {
	t.Helper()
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: %d\r\n", oauth2Path, readToken(t, folder), length)
}

// isClosed tells whether the server takes no connections any more.
func (p *process) isClosed() bool {
	connection, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err == nil {
		_ = connection.Close()
	}
	return err != nil
}

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
			server := serve(t, folder)
			begun := beginCreate(t, server, folder)
			server.signal(t, first)
			waitUntil(t, "the server drains", server.isClosed)
			// A terminal that is closed, or systemd with SendSIGHUP, sends one along with the first signal.
			server.signal(t, syscall.SIGHUP)
			begun.finish(t)
			if err := server.command.Wait(); err != nil {
				t.Errorf("%v: %s", err, server.stderr)
			}
		})
	}
}

func TestHostileSignalsEndADrain(t *testing.T) {
	t.Parallel()
	for _, second := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		folder := t.TempDir()
		server := serve(t, folder)
		beginCreate(t, server, folder)
		server.signal(t, syscall.SIGTERM)
		waitUntil(t, "the server drains", server.isClosed)
		server.signal(t, second)
		err := server.command.Wait()
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
	server := startServer(t, command)
	server.signal(t, syscall.SIGHUP)
	for range 20 {
		beginCreate(t, server, folder).finish(t)
	}
	server.end(t)
}
