//go:build slow

package commands_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

const (
	// defaultBackupRows is the default; the proof "rows" sets more.
	defaultBackupRows = 5_000
	backupCallers     = 64
	// createsBeforeBackup is how many creates must complete before a backup begins.
	createsBeforeBackup = 500
)

// describe returns how long creates waited.
func describe(waits []providerdtest.Latency) string {
	sorted := providerdtest.Milliseconds(waits)
	return fmt.Sprintf("%d creates: median %.1f ms, p99 %.1f ms, longest %.1f ms",
		len(waits), providerdtest.Quantile(sorted, 0.5), providerdtest.Quantile(sorted, 0.99), providerdtest.Quantile(sorted, 1))
}

// TestBackupUnderLoad backs up a database while 64 callers create, restores the backup elsewhere and serves it. It
// must have everything that was acknowledged before it began, unchanged, and no create may fail. The test reports how
// long creates wait without and with a backup.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	rows := processtest.ProofSize(t, "rows", defaultBackupRows)
	dir := t.TempDir()
	providerdtest.Fill(t, dir, rows)
	server := providerdtest.Serve(t, dir)
	// The time that a client takes to check a response does not count.
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: backupCallers}}
	defer client.CloseIdleConnections()
	journal := providerdtest.NewJournal()
	load := journal.Load(backupCallers, "load", func(name string) (providerdtest.Record, error) {
		return server.CreateOnce(client, name)
	})
	// A large database gives a baseline of its own size.
	journal.WaitForMore(t, max(createsBeforeBackup, rows/20))
	before := journal.Acknowledged()
	start := time.Now()
	said := providerdtest.RunCommand(t, dir, "backup", "backup.db")
	took := time.Since(start)
	during := len(journal.Acknowledged())
	load.Stop()
	server.Stop(t)
	if len(journal.Failures) > 0 {
		t.Errorf("%d creates failed, such as %v", len(journal.Failures), providerdtest.Sample(journal.Failures))
	}
	t.Logf("without a backup, %s", describe(journal.Latencies[:len(before)]))
	t.Logf("during a backup of %d rows in %.1f s, %s", rows, took.Seconds(), describe(journal.Latencies[len(before):during]))
	t.Log(strings.ReplaceAll(said, "\n", "; "))
	providerdtest.CheckBackup(t, dir, before)
}
