//go:build slow

package changes_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// defaultRows is the default; the proof "rows" sets more.
const defaultRows = 3_000

// TestPlanInLittleMemory plans changes of all entries of a large file, beside many more records of the same caller.
func TestPlanInLittleMemory(t *testing.T) {
	t.Parallel()
	rows := processtest.ProofSize(t, "rows", defaultRows)
	dir := t.TempDir()
	providerdtest.Fill(t, dir, rows)
	processtest.Must(t, providerdtest.Execute(t.Context(), filepath.Join(dir, "data", "providerd.db"),
		`UPDATE providers SET created_by = 'ci', idempotency_key = 'apply/' || pk`))
	const maxPlanned, maxPlanKiB = 10_000, 128 << 10
	m, entries := newModel(30), min(rows/10, maxPlanned)
	m.change(entries)
	m.write(t, dir)
	// A run can make 5,000 changes.
	providerdtest.RunShell(t, dir, fmt.Sprintf(`head -n %d model.yaml >half.yaml
		for file in half model; do providerd apply -f $file.yaml --as ci --yes; done`, 1+entries/2))
	for _, e := range m.entries {
		e.ClientSecret, e.RedirectURIs = m.unique("canary-canary-canary-canary-canary-secret"), m.unique("https://app.example.com/")
	}
	m.write(t, dir)
	peak := measure(t, dir, "apply -f model.yaml --as ci --dry-run", "plan", providerdtest.ExitDiffers)
	updates := countLines(t, filepath.Join(dir, "plan"), "^~ update ")
	processtest.Expect(t, updates == entries && peak <= maxPlanKiB,
		"%d updates in %d KiB, want %d in at most %d", updates, peak, entries, maxPlanKiB)
}

// measure runs a command, which must end with a status, keeps its output, and returns its peak memory in KiB.
func measure(t *testing.T, dir, line, output string, status int) (peak int) {
	t.Helper()
	file := processtest.Try(os.Create(filepath.Join(dir, output))).Must(t)
	defer func() { _ = file.Close() }()
	command := providerdtest.Command(t.Context(), dir, strings.Fields(line)...)
	command.Stdout = file
	begun := time.Now()
	child := processtest.Try(processtest.Start(command)).Must(t)
	peak = providerdtest.WaitPeakKiB(t, child)
	processtest.Equal(t, command.ProcessState.ExitCode(), status, "status of %s: %s", line, child.Stderr)
	t.Logf("%s: %.1f s, at most %d MiB of memory", line, time.Since(begun).Seconds(), peak>>10)
	return peak
}

func countLines(t *testing.T, path, pattern string) int {
	t.Helper()
	// Its status is 1 if there are none.
	output, _ := exec.CommandContext(t.Context(), "env", "LC_ALL=C", "grep", "-acE", pattern, path).Output()
	return processtest.Try(strconv.Atoi(strings.TrimSpace(string(output)))).Must(t)
}

// TestListsInLittleMemory runs every list, in every format, and every export with many rows, and verifies as many events.
func TestListsInLittleMemory(t *testing.T) {
	t.Parallel()
	rows := processtest.ProofSize(t, "rows", defaultRows)
	dir := t.TempDir()
	providerdtest.Fill(t, dir, rows)
	// maxListKiB limits the memory of a list of any length, and of commands that read all events.
	const maxListKiB = 64 << 10
	for _, line := range []string{"audit list --output jsonl >events.jsonl", "audit verify events.jsonl >ignored"} {
		line, output, _ := strings.Cut(line, " >")
		peak := measure(t, dir, line, output, 0)
		processtest.Expect(t, peak <= maxListKiB, "%s took %d KiB, at most %d are allowed", line, peak, maxListKiB)
	}
	// There are as many deleted providers, tokens and applications. Each application has a provider and a backchannel one.
	processtest.Must(t, providerdtest.Execute(t.Context(), filepath.Join(dir, "data", "providerd.db"),
		fmt.Sprintf(`INSERT INTO events (at, event, subject, kind, name, fields, caller, request_id, remote_address, os_user)
			SELECT created_at, 'provider deleted', pk + %d, 'oauth2', '', '', '', '', '', 'root' FROM providers`, rows),
		`INSERT INTO tokens (name, prefix, digest, operations, created_at, expires_at) SELECT 'ci', 'pvd_abcdef',
			CAST(request_id || pk AS BLOB), '["providers_oauth2_create"]', created_at, created_at FROM providers`,
		`INSERT INTO applications (slug, name, provider_pk)
			SELECT 'shop-' || pk, 'Shop', iif(kind = 'oauth2', pk, NULL) FROM providers`,
		"INSERT INTO backchannels SELECT id, id FROM applications",
	))
	for _, test := range []struct {
		line    string
		formats []string
		// rows is the expected number.
		rows int
	}{
		{"provider list", []string{"table", "json"}, rows},
		{"provider list --since 1d --created-by ci --after 1", []string{"table"}, rows - 1},
		{"provider list --reveal", []string{"json"}, rows},
		{"provider list --name nobody", []string{"json"}, 0},
		{"provider list --advice", []string{"table"}, 2 * (rows - rows/10)},
		{"provider list --advice", []string{"json"}, rows - rows/10},
		{"provider export", []string{""}, rows},
		{"provider export --reveal", []string{""}, rows},
		{"token list", []string{"table", "json"}, rows},
		{"application list", []string{"table", "json"}, rows},
		{"audit", []string{"table", "json"}, 2*rows + 1},
		{"audit --kind oauth2", []string{"table"}, 2*rows - rows/10},
	} {
		for _, format := range test.formats {
			line, begins := test.line, map[string]string{"table": "^[^A-Z]", "json": `^\{`, "": "^- "}[format]
			if format != "" {
				line += " --output " + format
			}
			peak := measure(t, dir, line, "listed", 0)
			if count := countLines(t, filepath.Join(dir, "listed"), begins); count != test.rows || peak > maxListKiB {
				t.Errorf("%s: %d rows in %d KiB, want %d in at most %d", line, count, peak, test.rows, maxListKiB)
			}
		}
	}
}
