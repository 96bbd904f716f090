package serving_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

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
		var next *providerdtest.Server
		started := make(chan error)
		go func() {
			var err error
			next, err = providerdtest.Start(command)
			started <- err
		}()
		waits := regexp.MustCompile(fmt.Sprintf("process %d of .* serves data/providerd.db; waiting up to 35s", server.Command.Process.Pid))
		processtest.WaitUntil(t, "the second server waits", func() bool { return waits.MatchString(messages.String()) })
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
		server = next
		server.Stderr = messages
	}
	server.Stop(t)
	providerdtest.CheckIntegrity(t, filepath.Join(dir, "data", "providerd.db"))
}
