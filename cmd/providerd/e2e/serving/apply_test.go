package serving_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
)

// startRelay starts a proxy that checks every response of a server against the contract. It passes the number of each
// response, from 1, to a function, and drops a response if that returns false.
func startRelay(t *testing.T, server string, onAnswer func(number int64) bool) string {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	var answers atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = contracttest.ClientOver(t, &http.Transport{MaxIdleConnsPerHost: 256}).Transport
	proxy.ModifyResponse = func(*http.Response) error {
		if !onAnswer(answers.Add(1)) {
			return http.ErrAbortHandler
		}
		return nil
	}
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	listener := httptest.NewServer(proxy)
	t.Cleanup(listener.Close)
	return listener.URL
}

func deliver(int64) bool { return true }

// applyEntries is the number of entries in the files.
const applyEntries = 300

// applyRig is a server and a file to apply to it.
type applyRig struct {
	dir string
	// url is that of a relay in front of the server.
	url   string
	token string
}

// newApplyRig writes a file with applyEntries, of which three in ten are directories.
func newApplyRig(t *testing.T, onAnswer func(number int64) bool) *applyRig {
	t.Helper()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir)
	r := &applyRig{dir: dir, url: startRelay(t, server.URL, onAnswer), token: providerdtest.Token(t, dir)}
	r.write(t, func(text string) string { return text })
	return r
}

// write writes the file again, edited.
func (r *applyRig) write(t *testing.T, edit func(text string) string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("oauth2:\n")
	for i := range applyEntries * 7 / 10 {
		_, _ = fmt.Fprintf(&text, "  - name: Provider %d\n    authorization_flow: 3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01\n", i)
	}
	text.WriteString("workspace_directory:\n")
	for i := range applyEntries * 3 / 10 {
		_, _ = fmt.Fprintf(&text, "  - {name: Directory %d, delegated_subject: admin@example.com, credentials: {n: %d}, "+
			"default_group_email_domain: example.com}\n", i, i)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "providers.yaml"), []byte(edit(text.String())), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *applyRig) command(t *testing.T) (command *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	command = providerdtest.Command(t.Context(), r.dir, "PROVIDERD_TOKEN"+"="+r.token,
		"apply", "-f", "providers.yaml", "--server", r.url, "--output", "json")
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	command.Stdout, command.Stderr = stdout, stderr
	return command, stdout, stderr
}

// apply applies the file, and returns how many entries had each outcome.
func (r *applyRig) apply(t *testing.T, wantStatus int) (counts map[string]int, messages string) {
	t.Helper()
	command, stdout, stderr := r.command(t)
	err := command.Run()
	if command.ProcessState == nil || command.ProcessState.ExitCode() != wantStatus {
		t.Fatalf("%v, want status %d: %s", err, wantStatus, stderr)
	}
	var entries []struct{ Outcome string }
	if err := json.Unmarshal(stdout.Bytes(), &entries); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	counts = map[string]int{}
	for _, entry := range entries {
		counts[entry.Outcome]++
	}
	return counts, stderr.String() + stdout.String()
}

func (r *applyRig) wantCounts(t *testing.T, counts map[string]int, created, unchanged, drifted int) {
	t.Helper()
	want := map[string]int{"created": created, "unchanged": unchanged, "drifted": drifted}
	for _, outcome := range []string{"created", "unchanged", "drifted", "refused", "pending"} {
		if counts[outcome] != want[outcome] {
			t.Errorf("%d entries are %s, want %d", counts[outcome], outcome, want[outcome])
		}
	}
	if stored := len(providerdtest.StoredPKs(t, r.dir)); stored != applyEntries {
		t.Errorf("%d records are stored, want %d", stored, applyEntries)
	}
}

func TestApplyCreatesEachEntryOnce(t *testing.T) {
	t.Parallel()
	r := newApplyRig(t, deliver)
	counts, _ := r.apply(t, 0)
	r.wantCounts(t, counts, applyEntries, 0, 0)
	counts, _ = r.apply(t, 0)
	r.wantCounts(t, counts, 0, applyEntries, 0)

	r.renewToken(t)
	counts, _ = r.apply(t, 0)
	r.wantCounts(t, counts, 0, applyEntries, 0)

	r.write(t, func(text string) string { return strings.Replace(text, "{n: 7}", "{n: 8}", 1) })
	counts, printed := r.apply(t, providerdtest.ExitDiffers)
	r.wantCounts(t, counts, 0, applyEntries-1, 1)
	if !strings.Contains(printed, "\"line\": 430,\n    \"column\": 76,\n    \"outcome\": \"drifted\",") {
		t.Errorf("apply printed %s", printed)
	}
}

// renewToken creates a new token of the same name, and revokes the previous one.
func (r *applyRig) renewToken(t *testing.T) {
	t.Helper()
	for _, arguments := range [][]string{
		{"create", "--name", "initial", "--allow", "providers_oauth2_create", "--allow", "providers_workspace_directory_create"},
		{"revoke", "1"},
	} {
		output, err := providerdtest.Command(t.Context(), r.dir, append([]string{"token"}, arguments...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		if len(output) > 0 {
			r.token = string(output)
		}
	}
}

func TestApplyEndsWellHoweverItIsStopped(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]os.Signal{
		"killed": os.Kill, "interrupted": os.Interrupt, "terminated": syscall.SIGTERM,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			middle := make(chan struct{})
			r := newApplyRig(t, func(number int64) bool {
				if number == 100 {
					close(middle)
				}
				return true
			})
			command, _, stderr := r.command(t)
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			<-middle
			if err := command.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := command.Wait(); !errors.As(err, &exit) {
				t.Fatalf("apply exited with %v", err)
			}
			if signal != os.Kill && (exit.ExitCode() != providerdtest.ExitFailed ||
				!strings.Contains(stderr.String(), "interrupted; run the command again to continue")) {
				t.Errorf("%v: %s", exit, stderr)
			}
			counts, _ := r.apply(t, 0)
			if counts["unchanged"] < 100 || counts["created"] == 0 {
				t.Errorf("the second run counts %v", counts)
			}
			r.wantCounts(t, counts, applyEntries-counts["unchanged"], counts["unchanged"], 0)
		})
	}
}

func TestApplyStandsLostAnswers(t *testing.T) {
	t.Parallel()
	r := newApplyRig(t, func(number int64) bool { return number%50 != 0 })
	counts, _ := r.apply(t, 0)
	// The responses to one entry may be dropped several times.
	if counts["unchanged"] == 0 {
		t.Error("no retry found an existing record")
	}
	r.wantCounts(t, counts, applyEntries-counts["unchanged"], counts["unchanged"], 0)
}
