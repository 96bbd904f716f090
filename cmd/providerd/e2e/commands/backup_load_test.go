//go:build slow

package commands_test

import (
	"net/http"
	"strings"
	"testing"

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

// TestBackupUnderLoad backs up a database while 64 callers create, restores the backup elsewhere and serves it. It
// must have everything that was acknowledged before it began, unchanged, and no create may fail.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	rows := processtest.ProofSize(t, "rows", defaultBackupRows)
	dir := t.TempDir()
	providerdtest.Fill(t, dir, rows)
	server := providerdtest.Serve(t, dir)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: backupCallers}}
	defer client.CloseIdleConnections()
	journal := providerdtest.NewJournal()
	load := journal.Load(backupCallers, "load", func(name string) (providerdtest.Record, error) {
		return server.CreateOnce(client, name)
	})
	journal.WaitForMore(t, max(createsBeforeBackup, rows/20))
	before := journal.Acknowledged()
	t.Log(strings.ReplaceAll(providerdtest.RunCommand(t, dir, "backup", "backup.db"), "\n", "; "))
	load.Stop()
	server.Stop(t)
	if len(journal.Failures) > 0 {
		t.Errorf("%d creates failed, such as %v", len(journal.Failures), providerdtest.Sample(journal.Failures))
	}
	providerdtest.CheckBackup(t, dir, before)
}
