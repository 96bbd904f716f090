//go:build slow

package serving_test

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
)

// Tries with one key at a time, at different replicas, make one record; different keys that claim one client_id make
// one record, too.
func TestReplicasRace(t *testing.T) {
	t.Parallel()
	const replicas, keys, tries = 3, 40, 6
	f := providerdtest.StartFleet(t, os.Args[0], postgrestest.NewCluster(t).CreateDatabase(t), replicas)
	made := providerdtest.NewJournal()
	var group sync.WaitGroup
	for i := range keys {
		for try := range tries {
			group.Go(func() {
				one, err := providerdtest.ErrorUnlessCreated(f.Create(try%replicas, fmt.Sprint("key-", i), ""))
				if err != nil {
					t.Errorf("key %d: %v", i, err)
				}
				made.Acknowledge(one, time.Now())
			})
			group.Go(func() {
				status, one, err := f.Create(try%replicas, fmt.Sprint("claim-", i, "-", try), fmt.Sprint("claimed-", i))
				switch {
				case err == nil && status == http.StatusCreated:
					made.Acknowledge(one, time.Now())
				case err != nil || status != http.StatusConflict:
					t.Errorf("claim of %d: status is %d, %v", i, status, err)
				}
			})
		}
	}
	group.Wait()
	if len(made.Creates) != 2*keys {
		t.Errorf("%d names are acknowledged, want %d", len(made.Creates), 2*keys)
	}
	made.Compare(t, f.Stored(t, f.URL))
	f.Stop(t)
}

// Replicas die in turn under load. Whoever asks another one with the same key gets the one record.
func TestReplicasDieUnderLoad(t *testing.T) {
	t.Parallel()
	const replicas, rounds, callers, creates = 3, 6, 12, 200
	f, made := providerdtest.StartFleet(t, os.Args[0], postgrestest.NewCluster(t).CreateDatabase(t), replicas), providerdtest.NewJournal()
	load := made.Load(callers, "k", f.CreateWithRetry)
	for round := range rounds {
		made.WaitForMore(t, creates)
		f.Restart(t, round%replicas, func() { made.WaitForMore(t, creates) })
	}
	load.Stop()
	made.Compare(t, f.Stored(t, f.URL))
	for name, one := range made.Creates {
		if again, err := f.CreateWithRetry(name); err != nil || again != one {
			t.Errorf("%s: is %v, was %v, %v", name, again, one, err)
		}
	}
	f.Stop(t)
}
