//go:build slow

package command

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store/storetest"
)

const (
	// defaultBackupRows is for an ordinary run; make backup-wait asks for more.
	defaultBackupRows = 5_000
	backupCallers     = 64
	// createsBeforeBackup are those that are waited for before a backup begins.
	createsBeforeBackup = 500
)

// describe says how long creates waited.
func describe(waits []createWait) string {
	sorted := inMilliseconds(waits)
	return fmt.Sprintf("%d creates: median %.1f ms, p99 %.1f ms, longest %.1f ms",
		len(waits), quantile(sorted, 0.5), quantile(sorted, 0.99), quantile(sorted, 1))
}

// TestBackupUnderLoad backs up a database while 64 callers create, restores the backup elsewhere and serves it. It must
// have all that was acknowledged before it began, as the database has it, and no create may fail. It tells how long
// creates wait without and with a backup.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	rows := countFrom(t, "PROVIDERD_BACKUP_ROWS", defaultBackupRows)
	folder := t.TempDir()
	if err := storetest.FillSQLite(t.Context(), filepath.Join(folder, "data", "providerd.db"), rows); err != nil {
		t.Fatal(err)
	}
	server, err := startProcess(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	// What a client takes to check an answer is not to be waited for.
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: backupCallers}}
	defer client.CloseIdleConnections()
	made := newJournal()
	load := made.load(backupCallers, "load", func(name string) (created, error) {
		return onlyCreated(server.create(client, folder, name, ""))
	})
	// A large database gives a baseline of its own size.
	made.await(t, max(createsBeforeBackup, rows/20))
	before := made.acknowledged()
	begun := time.Now()
	said := operate(t, folder, "backup", "backup.db")
	took := time.Since(begun)
	during := len(made.acknowledged())
	load.end()
	if err := server.stop(); err != nil {
		t.Error(err)
	}
	if len(made.failed) > 0 {
		t.Errorf("%d creates failed, such as %v", len(made.failed), some(made.failed))
	}
	t.Logf("without a backup, %s", describe(made.waits[:len(before)]))
	t.Logf("during a backup of %d rows in %.1f s, %s", rows, took.Seconds(), describe(made.waits[len(before):during]))
	t.Log(strings.ReplaceAll(said, "\n", "; "))
	compareRestored(t, folder, restoreElsewhere(t, folder), before)
}

// restoreElsewhere restores the backup in a folder of its own, and serves it.
func restoreElsewhere(t *testing.T, folder string) string {
	t.Helper()
	restored := t.TempDir()
	if err := os.Mkdir(filepath.Join(restored, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := copyOver(filepath.Join(folder, "data", "keyset.json"), filepath.Join(restored, "data", "keyset.json")); err != nil {
		t.Fatal(err)
	}
	operate(t, restored, "restore", filepath.Join(folder, "backup.db"))
	server, err := startProcess(t.Context(), restored)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.stop(); err != nil {
		t.Error(err)
	}
	return restored
}

// compareRestored demands that what was restored is the first of what the database has, all that is wanted among it.
func compareRestored(t *testing.T, folder, restored string, wanted map[string]created) {
	t.Helper()
	all, found := storedIn(t, folder), storedIn(t, restored)
	if len(found) > len(all) || !slices.Equal(found, all[:len(found)]) {
		t.Fatalf("%d records were restored, which are not the first of %d", len(found), len(all))
	}
	t.Logf("%d records were restored, %d of them created before the backup began", len(found), len(wanted))
	missing := maps.Clone(wanted)
	for _, one := range found {
		if missing[one.name] == one {
			delete(missing, one.name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("%d were acknowledged before the backup, and are not in it, such as %v", len(missing), some(missing))
	}
}
