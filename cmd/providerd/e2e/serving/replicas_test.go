//go:build slow

package serving_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
)

// TestReplicasRace sends concurrent creates with one key, and with different keys but one client_id, to different
// replicas. Either must create one record.
func TestReplicasRace(t *testing.T) {
	t.Parallel()
	const replicas, keys, tries = 3, 40, 6
	f := providerdtest.StartFleet(t, postgrestest.NewCluster(t).CreateDatabase(t), replicas)
	journal := providerdtest.NewJournal()
	// A replica that has no time for a create refuses it; send it again.
	create := func(try int, name, clientID string) (status int, record providerdtest.Record, err error) {
		for range 5 {
			status, record, err = f.Create(try%replicas, name, clientID)
			if status != http.StatusServiceUnavailable {
				break
			}
		}
		return status, record, err
	}
	var group sync.WaitGroup
	for i := range keys {
		for try := range tries {
			group.Go(func() {
				record, err := providerdtest.ErrorUnlessCreated(create(try, fmt.Sprint("key-", i), ""))
				if err != nil {
					t.Errorf("key %d: %v", i, err)
				}
				journal.Acknowledge(record)
			})
			group.Go(func() {
				status, record, err := create(try, fmt.Sprint("claim-", i, "-", try), fmt.Sprint("claimed-", i))
				switch {
				case err == nil && status == http.StatusCreated:
					journal.Acknowledge(record)
				case err != nil || status != http.StatusConflict:
					t.Errorf("client_id %d: status is %d, %v", i, status, err)
				}
			})
		}
	}
	group.Wait()
	if len(journal.Creates) != 2*keys {
		t.Errorf("%d names are acknowledged, want %d", len(journal.Creates), 2*keys)
	}
	journal.Compare(t, f.Stored(t, f.URL))
	f.Stop(t)
}

// createWithRetry sends a create to one replica after the other until one acknowledges it.
func createWithRetry(f *providerdtest.Fleet, name string) (record providerdtest.Record, err error) {
	first := rand.IntN(len(f.Replicas))
	for try := range 3 * len(f.Replicas) {
		record, err = providerdtest.ErrorUnlessCreated(f.Create((first+try)%len(f.Replicas), name, ""))
		if err == nil {
			break
		}
	}
	return record, err
}

// TestReplicasDieUnderLoad kills each replica in turn. A retry at another one with the same key must return the same
// record.
func TestReplicasDieUnderLoad(t *testing.T) {
	t.Parallel()
	const replicas, callers, creates = 3, 12, 100
	f := providerdtest.StartFleet(t, postgrestest.NewCluster(t).CreateDatabase(t), replicas)
	journal := providerdtest.NewJournal()
	load := journal.Load(callers, "k", func(name string) (providerdtest.Record, error) {
		return createWithRetry(f, name)
	})
	for i := range replicas {
		journal.WaitForMore(t, creates)
		f.Restart(t, i, func() { journal.WaitForMore(t, creates) })
	}
	load.Stop()
	journal.Compare(t, f.Stored(t, f.URL))
	for name, record := range journal.Creates {
		if again, err := createWithRetry(f, name); err != nil || again != record {
			t.Errorf("%s: got %v, %v, want %v", name, again, err, record)
		}
	}
	f.Stop(t)
}
