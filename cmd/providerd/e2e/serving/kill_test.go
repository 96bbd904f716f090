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
	folder, client, all, settled := t.TempDir(), contracttest.Client(t), providerdtest.NewJournal(), 0
	rounds := providerdtest.EnvCount(t, "PROVIDERD_KILL_ROUNDS", defaultKillRounds)
	for round := range rounds {
		sent := killUnderLoad(t, client, folder, fmt.Sprint(round))
		settled += len(providerdtest.StoredPKs(t, folder)) - len(all.Creates) - len(sent.Creates)
		retry(t, client, folder, sent)
		maps.Copy(all.Creates, sent.Creates)
	}
	t.Logf("%d kills, stored but not acknowledged %d", rounds, settled)
	all.Compare(t, providerdtest.Stored(t, folder))
	providerdtest.CheckIntegrity(t, filepath.Join(folder, "data", "providerd.db"))
}

// killUnderLoad starts the program and kills it while it is sent creates. Each caller has one that was not answered.
func killUnderLoad(t *testing.T, client *http.Client, folder, prefix string) *providerdtest.Journal {
	t.Helper()
	server, err := providerdtest.Start(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	sent := providerdtest.NewJournal()
	load := sent.Load(killWorkers, prefix, func(name string) (providerdtest.Record, error) {
		return server.CreateOnce(client, name)
	})
	sent.WaitForMore(t, acknowledgedAtAll+rand.IntN(acknowledgedAtAll))
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	load.Stop()
	return sent
}

// retry sends creates again: those that were acknowledged, and those whose answer was lost.
func retry(t *testing.T, client *http.Client, folder string, sent *providerdtest.Journal) {
	t.Helper()
	server, err := providerdtest.Start(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	for name := range sent.Failures {
		one, err := server.CreateOnce(client, name)
		if err != nil {
			t.Errorf("retry of %s: %v", name, err)
		}
		sent.Creates[name] = one
	}
	for name, one := range sent.Creates {
		if again, err := server.CreateOnce(client, name); err != nil || again != one {
			t.Errorf("retry of %s gives %v, %v, want %v", name, again, err, one)
		}
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
}
