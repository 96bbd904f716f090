package serving_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// startRelay starts a proxy that checks every response of a server against the contract. It passes the number of each
// response, from 1, to a function, and drops a response if that returns false.
func startRelay(t *testing.T, server string, onAnswer func(number int64) bool) string {
	t.Helper()
	target, err := url.Parse(server)
	processtest.Must(t, err)
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
	processtest.Must(t, os.WriteFile(filepath.Join(r.dir, "providers.yaml"), []byte(edit(text.String())), 0o600))
}

// start starts to apply the file.
func (r *applyRig) start(t *testing.T) *processtest.Child {
	t.Helper()
	child, err := processtest.Start(providerdtest.Command(t.Context(), r.dir, "PROVIDERD_TOKEN"+"="+r.token,
		"apply", "-f", "providers.yaml", "--server", r.url, "--output", "json"))
	processtest.Must(t, err)
	return child
}

// apply applies the file, and returns how many entries had each outcome.
func (r *applyRig) apply(t *testing.T, wantStatus int) (counts map[string]int, messages string) {
	t.Helper()
	child := r.start(t)
	if err := child.Wait(); child.Command.ProcessState.ExitCode() != wantStatus {
		t.Fatalf("%v, want status %d: %s", err, wantStatus, child.Stderr)
	}
	var entries []struct{ Outcome string }
	processtest.Must(t, json.Unmarshal([]byte(child.Stdout.String()), &entries))
	counts = map[string]int{}
	for _, entry := range entries {
		counts[entry.Outcome]++
	}
	return counts, child.Stderr.String() + child.Stdout.String()
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

	r.token = providerdtest.CreateToken(t, r.dir, "initial", "providers_workspace_directory_create")
	providerdtest.RunCommand(t, r.dir, "token", "revoke", "1")
	counts, _ = r.apply(t, 0)
	r.wantCounts(t, counts, 0, applyEntries, 0)

	r.write(t, func(text string) string { return strings.Replace(text, "{n: 7}", "{n: 8}", 1) })
	counts, printed := r.apply(t, providerdtest.ExitDiffers)
	r.wantCounts(t, counts, 0, applyEntries-1, 1)
	if !strings.Contains(printed, "\"line\": 430,\n    \"column\": 76,\n    \"outcome\": \"drifted\",") {
		t.Errorf("apply printed %s", printed)
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
			child := r.start(t)
			<-middle
			err := child.Stop(signal)
			if signal != os.Kill && (child.Command.ProcessState.ExitCode() != providerdtest.ExitFailed ||
				!strings.Contains(child.Stderr.String(), "interrupted; run the command again to continue")) {
				t.Errorf("%v: %s", err, child.Stderr)
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
