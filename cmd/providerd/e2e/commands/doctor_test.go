package commands_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// day is 24 hours.
const day = 24 * time.Hour

// finding is the result of a check in JSON. Status is ok, warn or fail, and Remedy "" if it is ok.
type finding struct{ Check, Status, Finding, Remedy string }

// isIn reports whether a finding matches one of some patterns, which fails and warns return.
func (f finding) isIn(patterns ...string) bool {
	text := fmt.Sprintf("%s %s: %s; %s", f.Status, f.Check, f.Finding, f.Remedy)
	return slices.ContainsFunc(patterns, func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(text) })
}

func fails(check, text string) []string { return []string{"^fail " + check + ": (?:" + text + ")$"} }

func warns(check, text string) []string { return []string{"^warn " + check + ": (?:" + text + ")$"} }

// setUp is a directory with a database for the doctor, which may have a fault.
type setUp struct {
	dir string
	// environment and flags are passed to the doctor.
	environment, flags []string
	// user runs the doctor, using a copy of the program in the directory; 0 for the user who runs the test.
	user uint32
}

// newSetUp returns the set-up of a server that has run and stored a secret.
func newSetUp(t *testing.T) setUp {
	t.Helper()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir)
	server.Create(t, contracttest.Client(t))
	server.Stop(t)
	return setUp{dir: dir}
}

// examine runs the doctor, and returns its findings and exit status.
func (s setUp) examine(t *testing.T) ([]finding, int) {
	command := providerdtest.Command(t.Context(), s.dir, append([]string{"doctor", "--output", "json"}, s.flags...)...)
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "PROVIDERD_")
	})
	command.Env = append(command.Env, s.environment...)
	if s.user != 0 {
		command.Path = filepath.Join(s.dir, "providerd")
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: s.user, Gid: s.user}}
	}
	output, err := command.Output()
	var found []finding
	if jsonErr := json.Unmarshal(output, &found); jsonErr != nil {
		t.Fatalf("%v: %v: %s", err, jsonErr, output)
	}
	return found, command.ProcessState.ExitCode()
}

// state returns the owner, size and time of each file in a set-up, which show any change.
func (s setUp) state(t *testing.T) string {
	t.Helper()
	return processtest.Run(t, exec.CommandContext(t.Context(), "find", s.dir, "-printf", `%p %U %s %m %T@\n`))
}

// TestDoctorFindsNothing checks a set-up without faults, also while a server runs.
func TestDoctorFindsNothing(t *testing.T) {
	t.Parallel()
	healthy := newSetUp(t)
	const checks = "configuration, directory, database file, database file, keyset file, initial token, disk space, " +
		"database, integrity, schema, keyset, records, tokens"
	expectNothing := func(when, checks string) {
		t.Helper()
		before := healthy.state(t)
		expectChecks(t, expectOnly(t, healthy), checks)
		if after := healthy.state(t); after != before {
			t.Errorf("%s, files were\n%s\nand are\n%s", when, before, after)
		}
	}
	expectNothing("after a server", checks)
	server := providerdtest.Serve(t, healthy.dir)
	withLog := strings.Replace(checks, "database file", "database file, database file, database file", 1)
	expectNothing("beside a server", withLog)
	// A WAL that a crash left is read, too.
	server.Kill(t)
	expectNothing("after a crash", withLog)
}

// TestDoctorRefusesWhatServeRefuses compares what both say about a configuration.
func TestDoctorRefusesWhatServeRefuses(t *testing.T) {
	t.Parallel()
	healthy := newSetUp(t)
	for line, want := range map[string]string{
		"PROVIDERD_DATABASE=foo":                        "--database: .*postgres://.*PROVIDERD_DATABASE",
		"PROVIDERD_DATABASE=~/providerd.db":             "--database: must not begin with ~.*PROVIDERD_DATABASE",
		"PROVIDERD_DATABASE=postgres://u@127.0.0.1:1/x": "--keyset is required with a PostgreSQL database",
		"PROVIDERD_KEYSET=keyset.json # the keys":       "--keyset: must not .*have a comment.*PROVIDERD_KEYSET",
		"PROVIDERD_KEYSET=data/providerd.db":            "the database and the keyset would both be .*; use another file",
		"PROVIDERD_TRUSTED_PROXY=10.0.0.5/8":            "write 10.0.0.0/8 or 10.0.0.5.*PROVIDERD_TRUSTED_PROXY",
		"PROVIDERD_TLS_KEY=$HOME/key.pem":               "--tls-key: must not begin with ~ or .*PROVIDERD_TLS_KEY",
		"PROVIDERD_TLS_CERT=cert.pem":                   "--tls-cert and --tls-key must be used together",
		"PROVIDERD_LISTEN=nowhere":                      `"nowhere" is not of the form HOST:PORT.*PROVIDERD_LISTEN`,
		"PROVIDERD_RATE_LIMIT=100":                      "100/h, with a number from 1 to 999999 .*PROVIDERD_RATE_LIMIT",
		"PROVIDERD_OPS_LISTEN=127.0.0.1:8080":           "--listen and --ops-listen must differ",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			var said []string
			for _, command := range []string{"serve", "doctor"} {
				run := providerdtest.Command(t.Context(), healthy.dir, line, command)
				output, err := run.CombinedOutput()
				processtest.Expect(t, err != nil && run.ProcessState.ExitCode() == providerdtest.ExitUsage, "%s: %v", command, err)
				text, _, _ := strings.Cut(string(output), "Run \"providerd")
				said = append(said, strings.TrimPrefix(text, "providerd: "+command+": "))
			}
			if said[0] != said[1] || !regexp.MustCompile(want).MatchString(said[0]) {
				t.Errorf("serve says %q and doctor %q, want %q", said[0], said[1], want)
			}
		})
	}
	healthy.environment = []string{"PROVIDERD_DATABASE=postgres://u@127.0.0.1:1/x"}
	healthy.flags = []string{"--database=sqlite:data/providerd.db"}
	expectOnly(t, healthy)
}

// expectOnly checks that the doctor finds these faults and no other, and its exit status. It returns all findings.
func expectOnly(t *testing.T, examined setUp, all ...[]string) []finding {
	t.Helper()
	found, status := examined.examine(t)
	faults, want := slices.Concat(all...), 0
	for _, fault := range faults {
		if strings.HasPrefix(fault, "^fail") {
			want = providerdtest.ExitFailed
		}
		processtest.Expect(t, slices.ContainsFunc(found, func(result finding) bool { return result.isIn(fault) }),
			"%q is not among %+v", fault, found)
	}
	processtest.Expect(t, status == want, "exit status is %d, want %d", status, want)
	for _, result := range found {
		processtest.Expect(t, result.Status == "ok" || result.isIn(faults...), "unexpected finding: %+v", result)
		if result.Status == "ok" != (result.Remedy == "") && !regexp.MustCompile("; (run|put|set|copy|restore|stop|pass|name) ").MatchString(result.Finding) {
			t.Errorf("remedy is missing or part of the finding: %+v", result)
		}
	}
	return found
}

// expectChecks expects the findings of these checks, in this order. The runbook lists each of them.
func expectChecks(t *testing.T, found []finding, want string) {
	t.Helper()
	page := providerdtest.ReadFile(t, providerdtest.ManualDir+"runbook.md")
	var names []string
	for _, result := range found {
		names = append(names, result.Check)
		processtest.Expect(t, strings.Contains(page, "`"+result.Check+"`"),
			"the runbook does not list the check %q", result.Check)
	}
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("checks are %s, want %s", got, want)
	}
}
