//go:build slow

package changes_test

import (
	"bufio"
	"database/sql"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
)

const (
	// defaultRows is the default; "make list-million" sets more.
	defaultRows = 3_000
	// maxPlanKiB is the maximum memory of a plan for as many entries as maxPlanned, beside any number of records.
	maxPlanKiB = 128 << 10
	maxPlanned = 10_000
)

// TestPlanInLittleMemory plans changes of all entries of a large file, beside many more records of the same caller.
func TestPlanInLittleMemory(t *testing.T) {
	t.Parallel()
	rows := providerdtest.EnvCount(t, "PROVIDERD_LIST_ROWS", defaultRows)
	dir := t.TempDir()
	providerdtest.Fill(t, dir, rows)
	db, err := sql.Open("sqlite3", filepath.Join(dir, "data", "providerd.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `UPDATE providers SET created_by = 'ci', idempotency_key = 'apply/' || pk`)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	m, entries := newModel(30), min(rows/10, maxPlanned)
	m.change(entries)
	m.write(t, dir)
	apply := []string{"apply", "-f", "model.yaml", "--as", "ci", "--parallel", "256"}
	providerdtest.RunCommand(t, dir, append(apply, "--yes")...)
	for _, e := range m.entries {
		e.ClientSecret, e.RedirectURIs = m.unique("canary-canary-canary-canary-canary-secret"), m.unique("https://app.example.com/")
	}
	m.write(t, dir)
	begun := time.Now()
	updates, peak := countUpdates(t, providerdtest.Command(t.Context(), dir, append(apply, "--dry-run")...))
	t.Logf("%d updates beside %d records: %.1f s, at most %d MiB of memory", updates, rows, time.Since(begun).Seconds(), peak>>10)
	if updates != entries || peak > maxPlanKiB {
		t.Errorf("%d updates in %d KiB, want %d in at most %d", updates, peak, entries, maxPlanKiB)
	}
}

// countUpdates returns the number of updates in a plan, and the peak memory of the command in KiB.
func countUpdates(t *testing.T, command *exec.Cmd) (updates, peak int) {
	t.Helper()
	stdout, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for read := 0; lines.Scan(); read++ {
		if strings.HasPrefix(lines.Text(), "~ update ") {
			updates++
		}
		if read%100 == 0 {
			peak = max(peak, providerdtest.PeakKiB(t, command))
		}
	}
	const differs = 3
	if err := command.Wait(); lines.Err() != nil || command.ProcessState.ExitCode() != differs {
		t.Errorf("%v: %v, %v", command.Args, lines.Err(), err)
	}
	return updates, peak
}
