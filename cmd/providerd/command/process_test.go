package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// newCommand is a command of providerd that is to be run in a folder.
func newCommand(ctx context.Context, folder string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, os.Args[0])
	command.Args = append([]string{"providerd"}, arguments...)
	command.Dir = folder
	return command
}

// process is providerd, serving.
type process struct {
	command *exec.Cmd
	url     string
	stderr  *syncBuffer
}

// serve starts "providerd serve" on a free port in a folder. It must end well, which it is told to after the test unless
// it has ended before.
func serve(t *testing.T, folder string, arguments ...string) *process {
	t.Helper()
	return serveWith(t, folder, nil, arguments...)
}

// serveWith is serve with more environment variables.
func serveWith(t *testing.T, folder string, environment []string, arguments ...string) *process {
	t.Helper()
	// The context of the test ends before the cleanup.
	server, err := startProcessWith(context.WithoutCancel(t.Context()), folder, environment, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if server.command.ProcessState == nil {
			server.end(t)
		}
	})
	return server
}

// startServer is startCommand for a test.
func startServer(t *testing.T, command *exec.Cmd) *process {
	t.Helper()
	server, err := startCommand(command)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// readyTimeout is how long a process may take to become ready on a machine that does much else.
const readyTimeout = time.Minute

// startProcess starts "providerd serve" on a free port in a folder and waits until it is ready.
func startProcess(ctx context.Context, folder string, arguments ...string) (*process, error) {
	return startProcessWith(ctx, folder, nil, arguments...)
}

// startProcessWith is startProcess with more environment variables.
func startProcessWith(
	ctx context.Context, folder string, environment []string, arguments ...string,
) (*process, error) {
	return startProgram(ctx, os.Args[0], folder, environment, arguments...)
}

// startProgram is startProcessWith for a program of another build.
func startProgram(
	ctx context.Context, program, folder string, environment []string, arguments ...string,
) (*process, error) {
	command := newCommand(ctx, folder, append([]string{"serve", "--listen", "127.0.0.1:0"}, arguments...)...)
	command.Path = program
	command.Env = append(os.Environ(), environment...)
	return startCommand(command)
}

// startCommand starts a command that serves and waits until it is ready. What it says is kept, unless the command has a
// standard error of its own.
func startCommand(command *exec.Cmd) (*process, error) {
	stderr := &syncBuffer{}
	if command.Stderr == nil {
		command.Stderr = stderr
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	timer := time.AfterFunc(readyTimeout, func() { _ = command.Process.Kill() })
	defer timer.Stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%w, %w: %s", err, command.Wait(), stderr)
	}
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		return nil, fmt.Errorf("first line is %q", line)
	}
	return &process{command: command, url: url, stderr: stderr}, nil
}

// signal sends the process a signal.
func (p *process) signal(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// stop sends SIGTERM and waits until the process ends well.
func (p *process) stop() error {
	timer := time.AfterFunc(readyTimeout, func() { _ = p.command.Process.Kill() })
	defer timer.Stop()
	return errors.Join(p.command.Process.Signal(syscall.SIGTERM), p.command.Wait())
}

// end stops the process, which must end well.
func (p *process) end(t *testing.T) {
	t.Helper()
	if err := p.stop(); err != nil {
		t.Errorf("%v: %s", err, p.stderr)
	}
}

// kill ends the process at once.
func (p *process) kill() error {
	if err := p.command.Process.Kill(); err != nil {
		return err
	}
	var exit *exec.ExitError
	if err := p.command.Wait(); !errors.As(err, &exit) {
		return fmt.Errorf("killed process: %w", err)
	}
	return nil
}

// post sends a create with the token in the file initial-token.
func (p *process) post(client *http.Client, folder, path, body string) (int, string, error) {
	return p.postWithKey(client, folder, path, body, "")
}

// postWithKey is post with an idempotency key, unless that is empty.
func (p *process) postWithKey(client *http.Client, folder, path, body, key string) (int, string, error) {
	token, err := os.ReadFile(filepath.Join(folder, "data", "initial-token"))
	if err != nil {
		return 0, "", err
	}
	request, err := http.NewRequest(http.MethodPost, p.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// send makes a request, with those of the token and the headers that are not empty, and returns the status of the answer.
func (p *process) send(t *testing.T, client *http.Client, method, path, token, body string, header http.Header) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		if !slices.Equal(values, []string{""}) {
			request.Header[name] = values
		}
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}

// readToken returns the token of a folder in which a server has made the database.
func readToken(t *testing.T, folder string) string {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(folder, "data", initialTokenFile))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(token))
}

// syncBuffer is what a process wrote so far.
type syncBuffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}

// waitUntil waits until something is so.
func waitUntil(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for begun := time.Now(); !isSo(); <-ticker.C {
		if time.Since(begun) > readyTimeout {
			t.Fatalf("after %v it is not so that %s", readyTimeout, what)
		}
	}
}
