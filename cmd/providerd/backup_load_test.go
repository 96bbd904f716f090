//go:build slow

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// load is creates that go on, with how long each waited.
type load struct {
	mutex sync.Mutex
	waits []time.Duration
	// acknowledged are the pks, in no order.
	acknowledged []int32
	failed       []string
	stop         chan struct{}
	group        sync.WaitGroup
}

func startLoad(t *testing.T, server *process, folder string) *load {
	t.Helper()
	l := &load{stop: make(chan struct{})}
	// What a client takes to check an answer is not to be waited for.
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: backupCallers}}
	t.Cleanup(client.CloseIdleConnections)
	creates := &killing{folder: folder, client: client}
	for caller := range backupCallers {
		l.group.Go(func() {
			for number := 0; !l.isStopped(); number++ {
				begun := time.Now()
				pk, err := creates.create(server, fmt.Sprintf("load-%d-%d", caller, number))
				l.note(pk, time.Since(begun), err)
			}
		})
	}
	return l
}

func (l *load) isStopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

func (l *load) note(pk int32, wait time.Duration, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err != nil {
		l.failed = append(l.failed, err.Error())
		return
	}
	l.acknowledged = append(l.acknowledged, pk)
	l.waits = append(l.waits, wait)
}

// count returns how many creates were acknowledged.
func (l *load) count() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return len(l.acknowledged)
}

// isFailed tells whether a create failed.
func (l *load) isFailed() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return len(l.failed) > 0
}

// end stops the load.
func (l *load) end() {
	close(l.stop)
	l.group.Wait()
}

// describe says how long creates waited, the longest last.
func describe(waits []time.Duration) string {
	waits = slices.Sorted(slices.Values(waits))
	at := func(share float64) time.Duration {
		return waits[int(share*float64(len(waits)-1))].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("%d creates: median %s, p99 %s, longest %s", len(waits), at(0.5), at(0.99), at(1))
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
	load := startLoad(t, server, folder)
	// A large database gives a baseline of its own size.
	before := max(createsBeforeBackup, rows/20)
	waitUntil(t, "creates go on", func() bool { return load.count() >= before || load.isFailed() })
	before = load.count()
	begun := time.Now()
	said := operate(t, folder, "backup", "backup.db")
	took := time.Since(begun)
	during := load.count()
	load.end()
	if err := server.stop(); err != nil {
		t.Error(err)
	}
	if len(load.failed) > 0 {
		t.Errorf("%d creates failed: %s", len(load.failed), load.failed[0])
	}
	t.Logf("without a backup, %s", describe(load.waits[:before]))
	t.Logf("during a backup of %d rows in %.1f s, %s", rows, took.Seconds(), describe(load.waits[before:during]))
	t.Log(strings.ReplaceAll(said, "\n", "; "))
	restored := restoreElsewhere(t, folder)
	compareRestored(t, folder, restored, load.acknowledged[:before])
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

// compareRestored demands that what was restored is what the database has of the same pks, all of them wanted.
func compareRestored(t *testing.T, folder, restored string, wanted []int32) {
	t.Helper()
	list := func(folder string) []string {
		printed := operate(t, folder, "provider", "list", "--output", "table")
		// The columns are as wide as what is in the first rows, which those that are not in the backup may be among.
		narrow := regexp.MustCompile(" +").ReplaceAllString(strings.TrimSpace(printed), " ")
		return strings.Split(narrow, "\n")[1:]
	}
	all, found := list(folder), list(restored)
	if len(found) > len(all) || !slices.Equal(found, all[:len(found)]) {
		t.Fatalf("%d records were restored, which are not the first of %d", len(found), len(all))
	}
	pks := map[string]bool{}
	for _, line := range found {
		pk, _, _ := strings.Cut(line, " ")
		pks[pk] = true
	}
	for _, pk := range wanted {
		if !pks[strconv.Itoa(int(pk))] {
			t.Fatalf("provider %d was acknowledged before the backup, and is not in it", pk)
		}
	}
	t.Logf("%d records were restored, %d of them created before the backup began", len(found), len(wanted))
}
