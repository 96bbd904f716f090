package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest"
)

// The size of the test: rounds are few in an ordinary run; make faults asks for more.
const (
	defaultKillRounds = 3
	killWorkers       = 16
	acknowledgedAtAll = 200
)

// TestKilledUnderLoad kills the program at random moments under load, again and again. Every acknowledged create must
// be stored once, and a retry with its key must find it.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	rounds := countFrom(t, "PROVIDERD_KILL_ROUNDS", defaultKillRounds)
	attack := &killing{folder: t.TempDir(), client: contracttest.Client(t), pks: map[string]int32{}}
	for round := range rounds {
		attack.round(t, round)
	}
	attack.account(t, rounds)
}

// killing is what was sent and acknowledged so far.
type killing struct {
	folder string
	client *http.Client
	mutex  sync.Mutex
	// pks are those of the acknowledged creates by their key.
	pks map[string]int32
	// sent counts all keys, acknowledged or not.
	sent int
	// settled counts retries of creates that were not acknowledged and turned out to be stored.
	settled int
}

func (k *killing) round(t *testing.T, round int) {
	t.Helper()
	server, err := startProcess(t.Context(), k.folder)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var once sync.Once
	before := len(k.pks)
	// The moment is a number of creates beyond those that the round must have.
	moment := acknowledgedAtAll + rand.IntN(acknowledgedAtAll)
	lost := make([]string, killWorkers)
	for worker := range killWorkers {
		group.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("%d-%d-%d", round, worker, i)
				pk, err := k.create(server, key)
				if err != nil {
					lost[worker] = key
					return
				}
				if k.acknowledge(key, pk)-before == moment {
					once.Do(func() { _ = server.command.Process.Kill() })
				}
			}
		})
	}
	group.Wait()
	var killed *os.SyscallError
	if err := server.command.Wait(); err == nil || errors.As(err, &killed) {
		t.Fatalf("the process was not killed: %v", err)
	}
	k.retry(t, round, lost)
}

// create sends one create with a key; its name is the key, so that it can be counted.
func (k *killing) create(server *process, key string) (int32, error) {
	body := fmt.Sprintf(`{"name":%q,"authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}`, key)
	status, text, err := server.postWithKey(k.client, k.folder, oauth2Path, body, key)
	if err != nil {
		return 0, err
	}
	if status != http.StatusCreated {
		return 0, fmt.Errorf("status is %d: %s", status, text)
	}
	var record struct{ PK int32 }
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return 0, err
	}
	return record.PK, nil
}

func (k *killing) acknowledge(key string, pk int32) int {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.pks[key] = pk
	return len(k.pks)
}

// retry sends the creates of a round again: the acknowledged ones and those whose answer was lost.
func (k *killing) retry(t *testing.T, round int, lost []string) {
	t.Helper()
	server, err := startProcess(t.Context(), k.folder)
	if err != nil {
		t.Fatal(err)
	}
	stored := len(storedPKs(t, k.folder))
	for _, key := range lost {
		pk, err := k.create(server, key)
		if err != nil {
			t.Errorf("retry of %s: %v", key, err)
		}
		k.pks[key] = pk
	}
	k.sent = len(k.pks)
	k.settled += len(lost) - (len(storedPKs(t, k.folder)) - stored)
	for key, pk := range k.pks {
		var of int
		if _, err := fmt.Sscanf(key, "%d-", &of); err != nil || of != round {
			continue
		}
		if again, err := k.create(server, key); err != nil || again != pk {
			t.Errorf("retry of %s gives %d, %v, want %d", key, again, err, pk)
		}
	}
	if err := server.stop(); err != nil {
		t.Error(err)
	}
}

// account compares what was acknowledged with what is stored.
func (k *killing) account(t *testing.T, rounds int) {
	t.Helper()
	path := filepath.Join(k.folder, "data", "providerd.db")
	database, err := storetest.OpenSQLite(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	found := countNames(t, database)
	missing, double := 0, 0
	for key := range k.pks {
		if found[key] == 0 {
			missing++
		}
	}
	for _, count := range found {
		double += count - 1
	}
	t.Logf("%d kills: acknowledged %d, stored but not acknowledged %d, missing %d, double %d",
		rounds, len(k.pks)-rounds*killWorkers, k.settled, missing, double)
	if missing > 0 || double > 0 || len(found) != k.sent {
		t.Errorf("%d names are stored, %d were sent", len(found), k.sent)
	}
	checkIntegrity(t, path)
}

func checkIntegrity(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	var verdict string
	err = db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict)
	if err := errors.Join(err, db.Close()); err != nil || verdict != "ok" {
		t.Errorf("integrity_check says %q, %v", verdict, err)
	}
}
