//go:build slow

package hostile_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

const (
	// maxHostileMiB is how much memory a command may use.
	maxHostileMiB = 256
	// maxHostileTime is how long a command may take.
	maxHostileTime = time.Minute
)

// flood writes 128 MiB, or less if the client disconnects.
func flood(w io.Writer) {
	piece := bytes.Repeat([]byte(" "), 1<<20)
	for range 128 {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

func respond(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// TestMaliciousServers applies a file to hostile servers, with as many entries as are sent concurrently. Each run must
// end in time with status 1, a short error, no record, and bounded memory.
func TestMaliciousServers(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	packer := gzip.NewWriter(&bomb)
	flood(packer)
	processtest.Must(t, packer.Close())
	other := providerdtest.StartCollectorFunc(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") })
	otherHost := strings.TrimPrefix(other, "http://")
	redirect := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://user:hunter2@"+otherHost+"/hunter2?hunter2")
			w.WriteHeader(status)
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"redirect": {redirect(http.StatusTemporaryRedirect), "The server redirects to " + otherHost + "."},
		"zip bomb": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			respond(http.StatusCreated, bomb.String())(w, r)
		}, "the response is larger than 16 MiB"},
		"list of numbers": {
			respond(http.StatusCreated, `{"pk": 1, "property_mappings": [`+strings.Repeat("0,", 15<<19)+"0]}"),
			"the response is larger than 16 MiB or has too many values",
		},
		"silence": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, ": context deadline exceeded; check the server, or allow more time with --timeout; run the command again to continue"},
		"colors and length": {respond(http.StatusUnauthorized, fmt.Sprintf(`{"status": 401, "title": "\u001b[31m\n", "detail": %q}`,
			strings.Repeat("x", 1<<20))), "401 \uFFFD[31m\uFFFD: xxxx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := "30s"
			if name == "silence" {
				timeout = "300ms"
			}
			applyToHostile(t, providerdtest.StartCollectorFunc(t, c.handler), timeout, c.want)
		})
	}
}

// applyToHostile applies a file, which must fail with the error want.
func applyToHostile(t *testing.T, url, timeout, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxHostileTime)
	defer cancel()
	command := providerdtest.Command(ctx, t.TempDir(), "PROVIDERD_TOKEN"+"=pvd_hunter2",
		"apply", "-f", "-", "--server", url, "--output", "json", "--timeout", timeout)
	command.Stdin = strings.NewReader(entries(16))
	child, err := processtest.Start(command)
	processtest.Must(t, err)
	peak := providerdtest.WaitPeakKiB(t, child) >> 10
	if command.ProcessState.ExitCode() != providerdtest.ExitFailed {
		t.Errorf("exit: %v, %v; want status 1", child.Wait(), ctx.Err())
	}
	messages := child.Stderr.String()
	if !strings.Contains(messages, want) || len(messages) > 8192 || strings.Contains(messages, "hunter2") || strings.Contains(messages, "\x1b") ||
		strings.Contains(messages, "run the command again") != strings.Contains(want, "run the command again") {
		t.Errorf("stderr is %.9000s, want %q", messages, want)
	}
	var applied []struct{ Outcome string }
	if err := json.Unmarshal([]byte(child.Stdout.String()), &applied); err != nil || len(applied) != 16 {
		t.Errorf("%v: %s", err, child.Stdout)
	}
	for i, entry := range applied {
		if entry.Outcome != "pending" {
			t.Fatalf("entry %d is %s", i, entry.Outcome)
		}
	}
	if peak == 0 || peak > maxHostileMiB {
		t.Errorf("peak is %d MiB, want at most %d", peak, maxHostileMiB)
	}
}

// entries returns a file with this many entries, which have secrets.
func entries(number int) string {
	var text strings.Builder
	text.WriteString("oauth2:\n")
	for i := range number {
		_, _ = fmt.Fprintf(&text,
			"  - {name: n%d, authorization_flow: 3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01, client_secret: hunter2}\n", i)
	}
	return text.String()
}
