//go:build slow

package hostile_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// stuckPipe returns the end of a pipe that is full.
func stuckPipe(t *testing.T) *os.File {
	t.Helper()
	reader, writer, err := os.Pipe()
	processtest.Must(t, err)
	t.Cleanup(func() { _ = errors.Join(reader.Close(), writer.Close()) })
	processtest.Must(t, writer.SetWriteDeadline(time.Now().Add(10*time.Millisecond)))
	if _, err := writer.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the pipe does not fill up: %v", err)
	}
	return writer
}

// TestUnreadLogDelaysNothing lets more of the log accumulate than may be pending. Every request must get a response, and
// every line must be written or counted when the pipe is read.
func TestUnreadLogDelaysNothing(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	processtest.Must(t, err)
	dir := t.TempDir()
	command := providerdtest.ServeCommand(t.Context(), dir, "--ops-listen", "127.0.0.1:0")
	command.Stderr = writer
	server, err := providerdtest.Start(command)
	processtest.Must(t, errors.Join(err, writer.Close()))
	log := bufio.NewReader(reader)
	ops := readOpsURL(t, log)
	client := contracttest.Client(t)
	client.Timeout = 20 * time.Second
	const requests, maxPendingLog = 6000, 1 << 20
	path := "/" + strings.Repeat("x", 2*maxPendingLog/requests)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range requests / 8 {
				response, err := client.Get(server.URL + path)
				if err != nil {
					t.Error(err)
					return
				}
				_ = response.Body.Close()
			}
		})
	}
	group.Wait()
	server.Create(t, client)
	if dropped := providerdtest.Scrape(t, ops)["providerd_log_lines_dropped_total"]; dropped == 0 {
		t.Error("the metrics do not count the lines that are dropped")
	}
	logged := make(chan int)
	go func() { logged <- countLogged(t, log) }()
	server.Stop(t)
	// The line about the shutdown may be dropped, too.
	const linesOfTheEnd = 2
	if count := <-logged; count < requests+1 || count > requests+1+linesOfTheEnd {
		t.Errorf("%d requests are logged or counted as dropped, want %d", count, requests+1)
	}
}

// readOpsURL reads a log until it has the URL of the ops listener.
func readOpsURL(t *testing.T, log *bufio.Reader) string {
	t.Helper()
	for {
		line, err := log.ReadString('\n')
		if err != nil {
			t.Fatalf("the log has no URL of the ops listener: %v", err)
		}
		if url := providerdtest.FindOpsURL(line); url != "" {
			return url
		}
	}
}

// countLogged reads a log to its end, and returns the number of logged and dropped requests.
func countLogged(t *testing.T, log io.Reader) int {
	t.Helper()
	var count providerdtest.LogCount
	err := count.Read(log)
	if err != nil || count.Notes == 0 {
		t.Errorf("%d notes of dropped lines, %v", count.Notes, err)
	}
	return count.Requests + count.Dropped
}

// TestUnwritableServerOutputs starts servers whose outputs cannot be written. They must serve and stop.
func TestUnwritableServerOutputs(t *testing.T) {
	t.Parallel()
	outputs := unwritable(t)
	outputs["stuck"] = stuckPipe(t)
	for name, output := range outputs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			manager := providerdtest.ListenAsManager(t, filepath.Join(dir, "notify"))
			command := providerdtest.ServeCommand(t.Context(), dir, "NOTIFY_SOCKET="+manager.LocalAddr().String())
			command.Stdout, command.Stderr = output, output
			child, err := processtest.Start(command)
			processtest.Must(t, err)
			server := &providerdtest.Server{Child: child, URL: readyURL(t, manager), Dir: dir}
			client := contracttest.Client(t)
			client.Timeout = 20 * time.Second
			for range 10 {
				server.Create(t, client)
			}
			server.Stop(t)
		})
	}
}

// readyURL returns the URL in a server's readiness notification.
func readyURL(t *testing.T, manager *net.UnixConn) string {
	t.Helper()
	processtest.Must(t, manager.SetReadDeadline(time.Now().Add(processtest.Timeout)))
	message := make([]byte, 1024)
	length, err := manager.Read(message)
	if err != nil {
		t.Fatalf("the server is not ready: %v", err)
	}
	url, ok := strings.CutPrefix(string(message[:length]), "READY=1\nSTATUS=serving on ")
	if !ok {
		t.Fatalf("the notification is %q", message[:length])
	}
	return url
}

// TestAllOutputIsJSON checks that all output of a server with a JSON log is JSON: notices and start-up errors, but no
// requests at the level error.
func TestAllOutputIsJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir, "PROVIDERD_DATABSE=x",
		"--log-format", "json", "--log-level", "error", "--listen", "0.0.0.0:0", "--ops-listen", "0.0.0.0:0")
	server.Create(t, contracttest.Client(t))
	server.Stop(t)
	for _, want := range []string{
		"did you mean PROVIDERD_DATABASE?", "plain HTTP", "wrote an access token", "serving the API",
		"can read the metrics",
	} {
		if !strings.Contains(server.Stderr.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
	text := server.Stderr.String()
	if strings.Contains(text, `"msg":"request"`) {
		t.Errorf("a request is logged: %s", text)
	}
	for _, failing := range [][]string{
		{"--listen", "192.0.2.1:0"},
		{"--tls-cert", "none.pem", "--tls-key", "none.pem"},
	} {
		command := providerdtest.ServeCommand(t.Context(), dir, append([]string{"--log-format", "json"}, failing...)...)
		text += providerdtest.ExpectExit(t, command, providerdtest.ExitFailed, `"level":"ERROR"`)
	}
	for line := range strings.Lines(text) {
		var record struct{ Time, Level, Msg string }
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Time == "" || record.Level == "" ||
			record.Msg == "" {
			t.Errorf("%v: %s", err, line)
		}
	}
}
