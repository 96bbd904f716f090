package serving_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// The size of the test. The proof "faults" runs more rounds.
const (
	defaultKillRounds = 3
	killWorkers       = 16
	minAcknowledged   = 200
)

// TestKilledUnderLoad repeatedly kills the program under load. Every acknowledged create must be stored once, and a
// retry with its key must return the same record.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	dir, client, all, settled := t.TempDir(), contracttest.Client(t), providerdtest.NewJournal(), 0
	rounds := processtest.ProofSize(t, "faults", defaultKillRounds)
	for round := range rounds {
		sent := killUnderLoad(t, client, dir, fmt.Sprint(round))
		settled += len(providerdtest.StoredPKs(t, dir)) - len(all.Creates) - len(sent.Creates)
		retry(t, client, dir, sent)
		maps.Copy(all.Creates, sent.Creates)
	}
	t.Logf("%d kills, stored but not acknowledged %d", rounds, settled)
	all.Compare(t, providerdtest.Stored(t, dir))
	providerdtest.CheckIntegrity(t, filepath.Join(dir, "data", "providerd.db"))
}

// killUnderLoad starts the program and kills it under load. Each caller is left with one create without a response.
func killUnderLoad(t *testing.T, client *http.Client, dir, prefix string) *providerdtest.Journal {
	t.Helper()
	server := providerdtest.Serve(t, dir)
	sent := providerdtest.NewJournal()
	load := sent.Load(killWorkers, prefix, func(name string) (providerdtest.Record, error) {
		return server.CreateOnce(client, name)
	})
	sent.WaitForMore(t, minAcknowledged+rand.IntN(minAcknowledged))
	server.Kill(t)
	load.Stop()
	return sent
}

// retry sends all creates again: those that were acknowledged, and those without a response.
func retry(t *testing.T, client *http.Client, dir string, sent *providerdtest.Journal) {
	t.Helper()
	server := providerdtest.Serve(t, dir)
	for name := range sent.Failures {
		record, err := server.CreateOnce(client, name)
		if err != nil {
			t.Errorf("retry of %s: %v", name, err)
		}
		sent.Creates[name] = record
	}
	for name, record := range sent.Creates {
		if again, err := server.CreateOnce(client, name); err != nil || again != record {
			t.Errorf("retry of %s returned %v, %v, want %v", name, again, err, record)
		}
	}
	server.Stop(t)
}
