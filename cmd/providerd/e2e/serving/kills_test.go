package serving_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// defaultKillRounds is the size of these tests. The proof "faults" runs more rounds.
const defaultKillRounds = 3

// TestKilledUnderLoad repeatedly kills the program under load, which leaves each caller with one create without a
// response. Every acknowledged create must be stored once, and a retry with its key must return the same record.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const workers, minAcknowledged = 16, 200
	dir, client, all, settled := t.TempDir(), contracttest.Client(t), providerdtest.NewJournal(), 0
	rounds := processtest.ProofSize(t, "faults", defaultKillRounds)
	for round := range rounds {
		server, sent := providerdtest.Serve(t, dir), providerdtest.NewJournal()
		load := sent.Load(workers, fmt.Sprint(round), func(name string) (providerdtest.Record, error) {
			return server.CreateOnce(client, name)
		})
		sent.WaitForMore(t, minAcknowledged+rand.IntN(minAcknowledged))
		server.Kill(t)
		load.Stop()
		settled += len(providerdtest.StoredPKs(t, dir)) - len(all.Creates) - len(sent.Creates)

		again := providerdtest.Serve(t, dir)
		for name := range sent.Failures {
			record, err := again.CreateOnce(client, name)
			if err != nil {
				t.Errorf("retry of %s: %v", name, err)
			}
			sent.Creates[name] = record
		}
		for name, record := range sent.Creates {
			if repeated, err := again.CreateOnce(client, name); err != nil || repeated != record {
				t.Errorf("retry of %s returned %v, %v, want %v", name, repeated, err, record)
			}
		}
		again.Stop(t)
		maps.Copy(all.Creates, sent.Creates)
	}
	t.Logf("%d kills, stored but not acknowledged %d", rounds, settled)
	all.Compare(t, providerdtest.Stored(t, dir))
	providerdtest.CheckIntegrity(t, filepath.Join(dir, "data", "providerd.db"))
}

// TestServersTakeTurns starts a server over a SQLite database that another one serves. It waits until that one stops or
// is killed; commands do not wait.
func TestServersTakeTurns(t *testing.T) {
	t.Parallel()
	dir, client := t.TempDir(), contracttest.Client(t)
	server := providerdtest.Serve(t, dir)
	rounds := processtest.ProofSize(t, "faults", defaultKillRounds)
	for round := range rounds {
		command := providerdtest.Command(t.Context(), dir, "serve", "--listen", "127.0.0.1:0")
		messages := &processtest.Buffer{}
		command.Stderr = messages
		manager := providerdtest.ListenAsManager(t, filepath.Join(dir, fmt.Sprint("notify", round)))
		command.Env = append(command.Environ(), "NOTIFY_SOCKET="+manager.LocalAddr().String())
		var next *providerdtest.Server
		started := make(chan error)
		go func() {
			var err error
			next, err = providerdtest.Start(command)
			started <- err
		}()
		waits := regexp.MustCompile(fmt.Sprintf("process %d of .* serves data/providerd.db; waiting up to 35s", server.Command.Process.Pid))
		processtest.WaitUntil(t, "the second server waits", func() bool { return waits.MatchString(messages.String()) })
		expectState(t, manager, "EXTEND_TIMEOUT_USEC=65000000\nSTATUS=waiting for another server to stop")
		server.Create(t, client)
		if stored := providerdtest.StoredPKs(t, dir); len(stored) != round+1 {
			t.Errorf("%d records are stored, want %d", len(stored), round+1)
		}
		if round%2 == 0 {
			server.Kill(t)
		} else {
			server.Stop(t)
		}
		if err := <-started; err != nil {
			t.Fatalf("%v: %s", err, messages)
		}
		expectState(t, manager, "READY=1\nSTATUS=serving on "+next.URL)
		server = next
		server.Stderr = messages
	}
	server.Stop(t)
	providerdtest.CheckIntegrity(t, filepath.Join(dir, "data", "providerd.db"))
}
