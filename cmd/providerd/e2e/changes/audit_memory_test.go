//go:build slow

package changes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// maxAuditKiB is the maximum memory of commands that read all events.
const maxAuditKiB = 128 << 10

// TestAuditInLittleMemory prints and verifies many events, beside a list of all records with their secrets.
func TestAuditInLittleMemory(t *testing.T) {
	t.Parallel()
	rows := providerdtest.EnvCount(t, "PROVIDERD_LIST_ROWS", defaultRows)
	dir := t.TempDir()
	providerdtest.Fill(t, dir, rows)
	var list time.Duration
	for _, test := range []struct {
		output    string
		arguments []string
	}{
		{"ignored", []string{"provider", "list", "--reveal", "--output", "json"}},
		{"heads.txt", []string{"audit", "head"}},
		{"events.jsonl", []string{"audit", "--output", "jsonl"}},
		{"ignored", []string{"audit", "verify", "--against", "heads.txt"}},
		{"ignored", []string{"audit", "verify", "--against", "events.jsonl"}},
	} {
		command := providerdtest.Command(t.Context(), dir, test.arguments...)
		took, peak := measure(t, command, filepath.Join(dir, test.output))
		if list == 0 {
			list = took
		}
		t.Logf("%v of %d records: %.1f s, %.2f of the list, at most %d MiB", test.arguments, rows, took.Seconds(),
			took.Seconds()/list.Seconds(), peak>>10)
		if peak > maxAuditKiB {
			t.Errorf("%v took %d KiB, at most %d are allowed", test.arguments, peak, maxAuditKiB)
		}
	}
}

// measure runs a command, which must succeed, and returns its duration and its peak memory in KiB.
func measure(t *testing.T, command *exec.Cmd, output string) (took time.Duration, peak int) {
	t.Helper()
	file, err := os.Create(output)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var messages providerdtest.Buffer
	command.Stdout, command.Stderr = file, &messages
	begun := time.Now()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%v: %v: %s", command.Args, err, &messages)
			}
			return time.Since(begun), peak
		case <-time.After(20 * time.Millisecond):
			if len(ended) == 0 {
				peak = max(peak, providerdtest.PeakKiB(t, command))
			}
		}
	}
}
