package commands_test

import (
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
)

// defaultResealRows is the default; "make reseal" sets more.
const defaultResealRows = 2_000

// TestResealUnderLoad rotates the key and reseals all old secrets during creates, none of which may fail.
func TestResealUnderLoad(t *testing.T) {
	t.Parallel()
	rows := providerdtest.EnvCount(t, "PROVIDERD_RESEAL_ROWS", defaultResealRows)
	dir := t.TempDir()
	providerdtest.StoreSecrets(t, dir, rows)
	server, err := providerdtest.Start(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	client, made := contracttest.Client(t), providerdtest.NewJournal()
	load := made.Load(8, "load", func(name string) (providerdtest.Record, error) {
		return server.CreateOnce(client, name)
	})
	providerdtest.RunCommand(t, dir, "key", "rotate")
	output := providerdtest.RunCommand(t, dir, "key", "reseal")
	load.Stop()
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	t.Logf("while the key was rotated and %s %d creates were made", strings.TrimSpace(output), len(made.Creates))
	isOld := func(one providerdtest.Record) bool { return strings.HasPrefix(one.Name, "old ") }
	made.Compare(t, slices.DeleteFunc(providerdtest.Stored(t, dir), isOld))
	if len(made.Creates) == 0 {
		t.Error("no creates were made")
	}
	providerdtest.CheckSecrets(t, dir, rows)
}
