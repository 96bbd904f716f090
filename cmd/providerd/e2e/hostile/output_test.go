//go:build slow

package hostile_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// unwritable returns standard outputs that cannot be written: a full disk, and a pipe without a reader.
func unwritable(t *testing.T) map[string]*os.File {
	t.Helper()
	full := processtest.Try(os.OpenFile("/dev/full", os.O_WRONLY, 0)).Must(t)
	reader, writer, err := os.Pipe()
	processtest.Must(t, err)
	processtest.Must(t, reader.Close())
	t.Cleanup(func() { _ = errors.Join(full.Close(), writer.Close()) })
	return map[string]*os.File{"no space left on device": full, "broken pipe": writer}
}

// TestUnwritableOutputFailsCommands checks that every command that only prints fails if its output cannot be written, and
// prints no error if the reader of a pipe has exited. A token that cannot be printed is not created, or is revoked if the
// disk is full, and an error reports it.
func TestUnwritableOutputFailsCommands(t *testing.T) {
	t.Parallel()
	server := providerdtest.Serve(t, t.TempDir())
	server.Create(t, contracttest.Client(t))
	server.Stop(t)
	processtest.Must(t, os.WriteFile(server.Dir+"/one.yaml", []byte(entries(1)), 0o600))
	for fault, stdout := range unwritable(t) {
		for _, line := range []string{
			"--help", "token create --help", "version", "token list", "provider list", "provider list --output json",
			"provider show 1", "provider show 1 --output json", "application list", "audit", "audit --output json",
			"provider export", "token list --output json", "application list --output json", "apply --schema",
			"completion bash", "apply -f one.yaml --dry-run", "apply -f one.yaml --dry-run --output json",
		} {
			stderr := failToPrint(t, server.Dir, stdout, line)
			isReported := strings.Contains(stderr, "providerd: ") && strings.HasSuffix(stderr, fault+"\n")
			isFull := strings.HasPrefix(fault, "no space")
			processtest.Expect(t, isReported == isFull, "%s: %s", line, stderr)
		}
		stderr := failToPrint(t, server.Dir, stdout, "token create --name ci --allow providers_oauth2_create")
		isRevoked := strings.Contains(stderr, "could not be printed and was revoked: ") && strings.HasSuffix(stderr, fault+"\n")
		isFull := strings.HasPrefix(fault, "no space")
		processtest.Expect(t, isRevoked == isFull && strings.Contains(stderr, "nothing was created; ") != isFull,
			"stderr is %s", stderr)
	}
	listed := providerdtest.RunCommand(t, server.Dir, "token", "list")
	processtest.Expect(t, regexp.MustCompile(`^.*\n.* active\n.* revoked\n$`).MatchString(listed), "tokens are %s", listed)
}

// failToPrint runs a command with this standard output, which must fail, and returns its standard error.
func failToPrint(t *testing.T, dir string, stdout *os.File, line string) string {
	t.Helper()
	command := providerdtest.Command(t.Context(), dir, strings.Fields(line)...)
	var stderr strings.Builder
	command.Stdout, command.Stderr = stdout, &stderr
	_ = command.Run()
	processtest.Equal(t, command.ProcessState.ExitCode(), providerdtest.ExitFailed, "%s: %s", line, stderr.String())
	return stderr.String()
}

func stuckPipe(t *testing.T) *os.File {
	reader, writer, err := os.Pipe()
	processtest.Must(t, err)
	t.Cleanup(func() { _ = errors.Join(reader.Close(), writer.Close()) })
	processtest.Must(t, writer.SetWriteDeadline(time.Now().Add(10*time.Millisecond)))
	if _, err := writer.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the pipe does not fill up: %v", err)
	}
	return writer
}

// TestUnreadLogDelaysNothing fills an unread log. Every request gets a response, and every line is written or counted.
func TestUnreadLogDelaysNothing(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	processtest.Must(t, err)
	ops := processtest.Local(processtest.FreePort(t))
	command := providerdtest.ServeCommand(t.Context(), t.TempDir(), "--ops-listen", ops)
	command.Stderr = writer
	server, err := providerdtest.Start(command)
	processtest.Must(t, err, writer.Close())
	client := contracttest.Client(t)
	client.Timeout = 20 * time.Second
	const requests, maxPendingLog = 6000, 1 << 20
	path := "/" + strings.Repeat("x", 2*maxPendingLog/requests)
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			for range requests / 8 {
				response, err := client.Get(server.URL + path)
				if err != nil {
					return err
				}
				_ = response.Body.Close()
			}
			return nil
		})
	}
	processtest.Must(t, group.Wait())
	server.Create(t, client)
	dropped := providerdtest.Scrape(t, "http://"+ops)["providerd_log_lines_dropped_total"]
	processtest.Expect(t, dropped != 0, "the metrics do not count the lines that are dropped")
	var count providerdtest.LogCount
	group.Go(func() error { return count.Read(reader) })
	server.Stop(t)
	if err := group.Wait(); err != nil || count.Notes == 0 {
		t.Errorf("%d notes of dropped lines, %v", count.Notes, err)
	}
	// The line about the shutdown may be dropped, too.
	const linesOfTheEnd = 2
	if all := count.Requests + count.Dropped; all < requests+1 || all > requests+1+linesOfTheEnd {
		t.Errorf("%d requests are logged or counted as dropped, want %d", all, requests+1)
	}
}

func TestUnwritableServerOutputs(t *testing.T) {
	t.Parallel()
	outputs := unwritable(t)
	outputs["stuck"] = stuckPipe(t)
	for name, output := range outputs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := processtest.Local(processtest.FreePort(t))
			command := providerdtest.ServeCommand(t.Context(), t.TempDir(), "--listen", address)
			command.Stdout, command.Stderr = output, output
			child := processtest.Try(processtest.Start(command)).Must(t)
			server := &providerdtest.Server{Child: child, URL: "http://" + address, Dir: command.Dir}
			client := contracttest.Client(t)
			client.Timeout = 20 * time.Second
			processtest.WaitUntil(t, "the server is ready", func() bool {
				status, _, err := server.Do(client, http.MethodGet, "/readyz", "", "", nil)
				return err == nil && status == http.StatusOK
			})
			for range 10 {
				server.Create(t, client)
			}
			server.Stop(t)
		})
	}
}

// TestAllOutputIsJSON checks that a server with a JSON log prints only JSON, and no requests at the level error.
func TestAllOutputIsJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir, "PROVIDERD_DATABSE=x",
		"--log-format", "json", "--log-level", "error", "--listen", "0.0.0.0:0", "--ops-listen", "0.0.0.0:0")
	server.Create(t, contracttest.Client(t))
	server.Stop(t)
	text := server.Stderr.String()
	for _, want := range []string{
		"did you mean PROVIDERD_DATABASE?", "plain HTTP", "wrote an access token", "serving the API", "can read the metrics",
	} {
		processtest.Contains(t, text, want)
	}
	processtest.Expect(t, !strings.Contains(text, `"msg":"request"`), "a request is logged: %s", text)
	for _, failing := range []string{"--listen 192.0.2.1:0", "--tls-cert none.pem --tls-key none.pem"} {
		command := providerdtest.ServeCommand(t.Context(), dir, strings.Fields("--log-format json "+failing)...)
		text += providerdtest.ExpectExit(t, command, providerdtest.ExitFailed, `"level":"ERROR"`)
	}
	for line := range strings.Lines(text) {
		var record struct{ Time, Level, Msg string }
		err := json.Unmarshal([]byte(line), &record)
		processtest.Expect(t, err == nil && record.Time != "" && record.Level != "" && record.Msg != "", "%v: %s", err, line)
	}
}
