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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
)

const (
	// maxHostileMiB is how much memory a command may take against a server that sends without end.
	maxHostileMiB = 256
	// maxHostileTime is how long it may take.
	maxHostileTime = time.Minute
)

// flood writes until the other side is gone, or 128 MiB are written.
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

// TestHostileServers applies a file of as many entries as are sent at a time to servers that are no providerd. Each time
// it ends in time, with status 1 and a short sentence, without a record, and within bounded memory.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	program := providerdtest.Build(t)
	var bomb bytes.Buffer
	packer := gzip.NewWriter(&bomb)
	flood(packer)
	if err := packer.Close(); err != nil {
		t.Fatal(err)
	}
	other := providerdtest.StartCollectorFunc(t, func(http.ResponseWriter, *http.Request) { t.Error("the target of the redirects is asked") })
	otherHost := strings.TrimPrefix(other, "http://")
	redirect := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://user:hunter2@"+otherHost+"/hunter2?hunter2")
			w.WriteHeader(status)
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		says    string
	}{
		"redirect": {redirect(http.StatusTemporaryRedirect), "The server redirects to " + otherHost + "."},
		"zip bomb": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			respond(http.StatusCreated, bomb.String())(w, r)
		}, "the answer has more than 16 MiB"},
		"list of numbers": {
			respond(http.StatusCreated, `{"pk": 1, "property_mappings": [`+strings.Repeat("0,", 15<<19)+"0]}"),
			"the answer has more values than any of a providerd server",
		},
		"silence": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, " within 300ms; check the server and the network, or allow more time with --timeout; run it again for the rest"},
		"colours and length": {respond(http.StatusUnauthorized, fmt.Sprintf(`{"status": 401, "title": "\u001b[31m\n", "detail": %q}`,
			strings.Repeat("x", 1<<20))), "401 \uFFFD[31m\uFFFD: xxxx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := "30s"
			if name == "silence" {
				timeout = "300ms"
			}
			applyToHostile(t, program, providerdtest.StartCollectorFunc(t, c.handler), timeout, c.says)
		})
	}
}

// applyToHostile applies a file, which must fail with a text.
func applyToHostile(t *testing.T, program, url, timeout, says string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxHostileTime)
	defer cancel()
	command := exec.CommandContext(ctx, program,
		"apply", "-f", "-", "--server", url, "--output", "json", "--timeout", timeout)
	command.Env = append(os.Environ(), "PROVIDERD_TOKEN"+"=pvd_hunter2")
	command.Stdin = strings.NewReader(entries(16))
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	peak := watchPeak(command.Process.Pid)
	if err := command.Wait(); command.ProcessState.ExitCode() != providerdtest.ExitFailed {
		t.Errorf("apply ends with %v, %v; want status 1", err, ctx.Err())
	}
	talk := stderr.String()
	if !strings.Contains(talk, says) || len(talk) > 8192 || strings.Contains(talk, "hunter2") || strings.Contains(talk, "\x1b") ||
		strings.Contains(talk, "run it again") != strings.Contains(says, "run it again") {
		t.Errorf("apply says %.9000s, want %q", talk, says)
	}
	var applied []struct{ Outcome string }
	if err := json.Unmarshal(stdout.Bytes(), &applied); err != nil || len(applied) != 16 {
		t.Errorf("%v: %s", err, stdout.String())
	}
	for i, one := range applied {
		if one.Outcome != "pending" {
			t.Fatalf("entry %d is %s", i, one.Outcome)
		}
	}
	if mib := peak(); mib == 0 || mib > maxHostileMiB {
		t.Errorf("apply takes %d MiB at its peak, want at most %d", mib, maxHostileMiB)
	}
}

// watchPeak looks at the memory of a process until it ends, and tells its peak in MiB after that. The peak that the
// system tells of a process that has ended begins with that of the process which started it.
func watchPeak(pid int) (peak func() int) {
	found := make(chan int, 1)
	go func() {
		kib := 0
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		for ; ; <-ticker.C {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			_, rest, hasMemory := strings.Cut(string(status), "VmHWM:")
			if err != nil || !hasMemory {
				found <- kib >> 10
				return
			}
			_, _ = fmt.Sscan(rest, &kib)
		}
	}()
	return func() int { return <-found }
}

// entries is a file with some entries, which have secrets.
func entries(number int) string {
	var text strings.Builder
	text.WriteString("oauth2:\n")
	for i := range number {
		_, _ = fmt.Fprintf(&text,
			"  - {name: n%d, authorization_flow: 3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01, client_secret: hunter2}\n", i)
	}
	return text.String()
}

// TestHostileFile gives apply a file and a pipe that are too long.
func TestHostileFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	text := "#" + strings.Repeat("x", 64<<20)
	if err := os.WriteFile(filepath.Join(folder, "long.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"long.yaml", "-"} {
		command := providerdtest.Command(t.Context(), folder, "apply", "-f", file, "--dry-run")
		command.Stdin = strings.NewReader(text)
		output, err := command.CombinedOutput()
		if err == nil || !strings.Contains(string(output), "the files have more than 64 MiB together; apply less at a time") {
			t.Errorf("%s: %v: %.1000s", file, err, output)
		}
	}
}
