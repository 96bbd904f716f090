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

const applyEntries = 300

// applyRig is a directory with a server's data and a file to apply, and the URL of a relay in front of the server.
type applyRig struct{ dir, url, token string }

// newApplyRig writes a file with applyEntries, of which three in ten are directories. The relay checks every response
// against the contract. It passes the number of each, from 1, to a function, and drops the response if that returns
// false.
func newApplyRig(t *testing.T, onAnswer func(number int64) bool) *applyRig {
	t.Helper()
	dir := t.TempDir()
	target := processtest.Try(url.Parse(providerdtest.Serve(t, dir).URL)).Must(t)
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
	relay := httptest.NewServer(proxy)
	t.Cleanup(relay.Close)

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
	processtest.Must(t, os.WriteFile(filepath.Join(dir, "providers.yaml"), []byte(text.String()), 0o600))
	return &applyRig{dir: dir, url: relay.URL, token: providerdtest.Token(t, dir)}
}

func (r *applyRig) start(t *testing.T) *processtest.Child {
	t.Helper()
	child, err := processtest.Start(providerdtest.Command(t.Context(), r.dir, "PROVIDERD_TOKEN"+"="+r.token,
		"apply", "-f", "providers.yaml", "--server", r.url, "--output", "json"))
	processtest.Must(t, err)
	return child
}

// apply applies the file. Some entries must have drifted, and the others be created or unchanged. All must then be
// stored. It returns how many were unchanged.
func (r *applyRig) apply(t *testing.T, wantStatus, drifted int) (unchanged int, printed string) {
	t.Helper()
	child := r.start(t)
	if err := child.Wait(); child.Command.ProcessState.ExitCode() != wantStatus {
		t.Fatalf("%v, want status %d: %s", err, wantStatus, child.Stderr)
	}
	var entries []struct{ Outcome string }
	processtest.Must(t, json.Unmarshal([]byte(child.Stdout.String()), &entries))
	counts := map[string]int{}
	for _, entry := range entries {
		counts[entry.Outcome]++
	}
	processtest.Expect(t, len(entries) == applyEntries && counts["drifted"] == drifted &&
		counts["created"]+counts["unchanged"] == applyEntries-drifted,
		"the outcomes are %v, want %d drifted", counts, drifted)
	processtest.Equal(t, len(providerdtest.StoredPKs(t, r.dir)), applyEntries, "stored records")
	return counts["unchanged"], child.Stderr.String() + child.Stdout.String()
}

func TestApplyCreatesEachEntryOnce(t *testing.T) {
	t.Parallel()
	r := newApplyRig(t, func(int64) bool { return true })
	expect := func(status, wantUnchanged, drifted int) (printed string) {
		t.Helper()
		unchanged, printed := r.apply(t, status, drifted)
		processtest.Equal(t, unchanged, wantUnchanged, "unchanged entries")
		return printed
	}
	expect(0, 0, 0)
	expect(0, applyEntries, 0)

	r.token = providerdtest.CreateToken(t, r.dir, "initial", "providers_workspace_directory_create")
	providerdtest.RunCommand(t, r.dir, "token", "revoke", "1")
	expect(0, applyEntries, 0)

	providerdtest.Run(t, "sed", "--in-place", "s/{n: 7}/{n: 8}/", filepath.Join(r.dir, "providers.yaml"))
	printed := expect(providerdtest.ExitDiffers, applyEntries-1, 1)
	processtest.Contains(t, printed, "\"line\": 430,\n    \"column\": 76,\n    \"outcome\": \"drifted\",")
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
			processtest.Expect(t, signal == os.Kill || child.Command.ProcessState.ExitCode() == providerdtest.ExitFailed &&
				strings.Contains(child.Stderr.String(), "interrupted; run the command again to continue"),
				"%v: %s", err, child.Stderr)
			unchanged, _ := r.apply(t, 0, 0)
			processtest.Expect(t, unchanged >= 100 && unchanged != applyEntries, "%d entries are unchanged", unchanged)
		})
	}
}

func TestApplyStandsLostAnswers(t *testing.T) {
	t.Parallel()
	r := newApplyRig(t, func(number int64) bool { return number%50 != 0 })
	// The responses to one entry may be dropped several times.
	unchanged, _ := r.apply(t, 0, 0)
	processtest.Expect(t, unchanged != 0, "no retry found an existing record")
}
