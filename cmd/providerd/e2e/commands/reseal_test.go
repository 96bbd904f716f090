package commands_test

import (
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// The size of the test. The proof "reseal" has more thousands of rows.
const defaultResealThousands = 2

// TestResealUnderLoad rotates the key and reseals all old secrets during creates, none of which may fail.
func TestResealUnderLoad(t *testing.T) {
	t.Parallel()
	rows := 1000 * processtest.ProofSize(t, "reseal", defaultResealThousands)
	dir := t.TempDir()
	providerdtest.Fill(t, dir, rows)
	server := providerdtest.Serve(t, dir)
	client, journal := contracttest.Client(t), providerdtest.NewJournal()
	load := journal.Load(8, "load", func(name string) (providerdtest.Record, error) {
		return server.CreateOnce(client, name)
	})
	providerdtest.RunCommand(t, dir, "key", "rotate")
	output := providerdtest.RunCommand(t, dir, "key", "reseal")
	load.Stop()
	server.Stop(t)
	t.Logf("during a rotation and %s, %d creates succeeded", strings.TrimSpace(output), len(journal.Creates))
	isOld := func(record providerdtest.Record) bool { return !strings.HasPrefix(record.Name, "load-") }
	journal.Compare(t, slices.DeleteFunc(providerdtest.Stored(t, dir), isOld))
	if len(journal.Creates) == 0 {
		t.Error("no create succeeded")
	}
	providerdtest.CheckFilled(t, dir, rows)
}
