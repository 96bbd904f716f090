//go:build slow

package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// TestMasterKeyIsReplacedUnderLoad replaces the master key of three replicas, each with a keyset file of its own, as on
// machines of their own. No create is refused.
func TestMasterKeyIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	const replacements, creates = 3, 100
	f, journal := providerdtest.StartFleet(t, postgrestest.NewCluster(t).CreateDatabase(t), 1), providerdtest.NewJournal()
	for range 2 {
		dir := t.TempDir()
		providerdtest.Run(t, "cp", "--archive", filepath.Dir(f.Keyset()), dir)
		replica := providerdtest.MustStart(t, providerdtest.ServeCommand(t.Context(), dir, f.Environment()...))
		f.Replicas = append(f.Replicas, replica)
	}
	load := journal.Load(2*len(f.Replicas), "load", func(name string) (providerdtest.Record, error) {
		caller := strings.Split(name, "-")[1]
		return providerdtest.ErrorUnlessCreated(f.Create(int(caller[0])%len(f.Replicas), name, ""))
	})
	defer load.Stop()
	used := map[string]bool{keyID(t, f, "master"): true}
	for range replacements {
		f.RunCommand(t, "key", "create", "--keyset", "both.json", "--add", "data/keyset.json")
		distribute(t, f, "both.json")
		journal.WaitForMore(t, creates)
		f.RunCommand(t, "key", "rewrap")
		journal.WaitForMore(t, creates)
		f.RunCommand(t, "key", "create", "--keyset", "new.json", "--drop", "data/keyset.json")
		distribute(t, f, "new.json")
		for _, replica := range f.Replicas {
			replica.ExpectReadiness(t, "ready")
		}
		journal.WaitForMore(t, creates)
		used[keyID(t, f, "master")] = true
	}
	load.Stop()
	if len(used) != replacements+1 {
		t.Errorf("the master keys were %v, want %d", used, replacements+1)
	}
	journal.Compare(t, providerdtest.StoredAt(t, f.URL, filepath.Join(f.Replicas[2].Dir, "data", "keyset.json")))
}

// distribute replaces the keyset files of other machines and, at last, of the first by a file on the first.
func distribute(t *testing.T, f *providerdtest.Fleet, file string) {
	t.Helper()
	path := filepath.Join(f.Dir, file)
	for _, replica := range []*providerdtest.Server{f.Replicas[1], f.Replicas[2], f.Replicas[0]} {
		next := filepath.Join(replica.Dir, "data", "next.json")
		providerdtest.Run(t, "cp", "--preserve=mode", path, next)
		processtest.Must(t, os.Rename(next, filepath.Join(replica.Dir, "data", "keyset.json")))
	}
	processtest.Must(t, os.Remove(path))
}
