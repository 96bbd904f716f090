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
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

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
	packer, spaces := gzip.NewWriter(&bomb), bytes.Repeat([]byte(" "), 1<<20)
	for range 128 {
		processtest.Try(packer.Write(spaces)).Must(t)
	}
	processtest.Must(t, packer.Close())
	other := providerdtest.StartCollectorFunc(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") })
	otherHost := strings.TrimPrefix(other, "http://")
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://user:hunter2@"+otherHost+"/hunter2?hunter2", http.StatusTemporaryRedirect)
		}, "The server redirects to " + otherHost + "."},
		"zip bomb": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			respond(http.StatusCreated, bomb.String())(w, r)
		}, "the response is larger than 16 MiB"},
		"list of numbers": {
			respond(http.StatusCreated, `{"pk": 1, "property_mappings": [`+strings.Repeat("0,", 15<<19)+"0]}"),
			"the response is larger than 16 MiB or has too many values",
		},
		"silence": {
			func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, ": context deadline exceeded; check the " +
				"server, or allow more time with --timeout; run the command again to continue",
		},
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

func applyToHostile(t *testing.T, url, timeout, want string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := providerdtest.Command(ctx, t.TempDir(), "PROVIDERD_TOKEN"+"=pvd_hunter2",
		"apply", "-f", "-", "--server", url, "--output", "json", "--timeout", timeout)
	command.Stdin = strings.NewReader(entries(16))
	child := processtest.Try(processtest.Start(command)).Must(t)
	peak := providerdtest.WaitPeakKiB(t, child) >> 10
	processtest.Expect(t, command.ProcessState.ExitCode() == providerdtest.ExitFailed,
		"exit: %v, %v", child.Wait(), ctx.Err())
	messages := child.Stderr.String()
	forbidden := regexp.MustCompile("hunter2|\x1b").FindString(messages)
	processtest.Expect(t, strings.Contains(messages, want) && len(messages) <= 8192 && forbidden == "" &&
		strings.Contains(messages, "run the command again") == strings.Contains(want, "run the command again"),
		"stderr is %.9000s, want %q", messages, want)
	var applied []struct{ Outcome string }
	err := json.Unmarshal([]byte(child.Stdout.String()), &applied)
	processtest.Expect(t, err == nil && len(applied) == 16, "%v: %s", err, child.Stdout)
	for i, entry := range applied {
		processtest.Require(t, entry.Outcome == "pending", "entry %d is %s", i, entry.Outcome)
	}
	processtest.Expect(t, peak != 0 && peak <= 256, "peak is %d MiB, want at most 256", peak)
}

func entries(number int) string {
	var text strings.Builder
	text.WriteString("oauth2:\n")
	for i := range number {
		_, _ = fmt.Fprintf(&text,
			"  - {name: n%d, authorization_flow: 3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01, client_secret: hunter2}\n", i)
	}
	return text.String()
}

// doublings returns a file with 40 anchors, each of which doubles the previous one.
func doublings(form, entry string) string {
	text := "x-0: &a0 {b: 1}\n"
	for i := range 40 {
		text += fmt.Sprintf("x-%d: &a%d "+form+"\n", i+1, i+1, i, i)
	}
	return text + "workspace_directory:\n- {name: a, " + entry + "}\n"
}

func directories(anchor string, count int, credentials string) string {
	text := strings.Builder{}
	text.WriteString(anchor + "workspace_directory:\n")
	for i := range count {
		fmt.Fprintf(&text, "- {name: n%d, credentials: %s}\n", i, credentials)
	}
	return text.String()
}

// TestAliasesTakeLittleMemory applies short files that expand to much data, and one with an ordinary anchor.
func TestAliasesTakeLittleMemory(t *testing.T) {
	t.Parallel()
	const (
		maxMebibytes = 400

		flow   = "  authorization_flow: 3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01\n"
		values = "exceeds the limit of 2000000 values for all files together, with aliases expanded"
	)
	repeated := func(text string, count int) string { return "[" + strings.Repeat(text+",", count) + "]" }
	shared := "x-d: &d\n" + flow + "  redirect_uris: |\n" + strings.Repeat("    https://a.example.com/callback\n", 10) + "oauth2:\n"
	for i := range 10_000 {
		shared += fmt.Sprintf("- {<<: *d, name: n%d}\n", i)
	}
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"values": {
			[]string{"x-a: &a " + repeated("0", 99) + "\n" + directories("x-b: &b "+repeated("*a", 990)+"\n", 200, "{a: *b}")},
			"0.yaml:24:3: workspace_directory: " + values,
		},
		"values of several files": {
			slices.Repeat([]string{directories("x-b: &b "+repeated("0", 99_000)+"\n", 15, "{a: *b}")}, 2),
			"1.yaml:8:3: workspace_directory: " + values,
		},
		"long values":    {[]string{directories("x-s: &s "+strings.Repeat("x", 100_000)+"\n", 50, "{a: "+repeated("*s", 200)+"}")}, "is larger than 1 MiB as JSON"},
		"many bytes":     {[]string{directories("x-s: &s "+strings.Repeat("x", 500_000)+"\n", 400, "{a: *s}")}, "exceeds the limit of 128 MiB for all files"},
		"long name":      {[]string{directories("", 1, "{"+strings.Repeat("k", 300_000)+": "+repeated("0", 30_000)+"}")}, "`delegated_subject` is required."},
		"doubled values": {[]string{doublings("[*a%d, *a%d]", "credentials: {a: *a40}")}, "is larger than 1 MiB as JSON"},
		"doubled merges": {[]string{doublings("{<<: [*a%d, *a%d]}", "<<: *a40")}, values},
		"merges":         {[]string{directories("x-m: &m {a: 1, b: 2, c: 3}\n", 200, "{<<: "+repeated("*m", 10_000)+"}")}, values},
		"values unread":  {[]string{"x-a:\n" + strings.Repeat("- 0\n", 1_000_000)}, "0.yaml:1000001:1: " + values},
		"values in a line": {
			[]string{directories("", 1, "{a: "+repeated("[]", 330_000)+"}")}, "0.yaml:2:1: has more than 200000 values on one line",
		},
		"a long file":     {[]string{"#" + strings.Repeat("x", 64<<20)}, "the files up to and including 0.yaml exceed 64 MiB; apply fewer files at a time"},
		"faults":          {[]string{"oauth2:\n" + strings.Repeat("- {}\n", 300_000)}, "at least 10000 problems in 1 file; nothing was stored"},
		"a shared anchor": {[]string{shared}, "checked 10000 entries without a server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for i, text := range c.files {
				processtest.Must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".yaml")), []byte(text), 0o600))
			}
			child := processtest.Try(processtest.Start(providerdtest.Command(t.Context(), dir, "apply", "--dry-run", "-f", "."))).Must(t)
			mib := providerdtest.WaitPeakKiB(t, child) >> 10
			output := child.Stdout.String() + child.Stderr.String()
			processtest.Expect(t, strings.Contains(output, c.want), "output is %.2000s, want %q", output, c.want)
			t.Logf("%d MiB", mib)
			processtest.Expect(t, mib != 0 && mib <= maxMebibytes, "peak is %d MiB, want at most %d", mib, maxMebibytes)
		})
	}
}
