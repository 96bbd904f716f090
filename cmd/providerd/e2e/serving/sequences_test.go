//go:build slow

package serving_test

import (
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// TestSequencesSetBack sets sequences back under load, as a database that was copied without them has them. Every create is
// stored once, and no pk or event is given twice.
func TestSequencesSetBack(t *testing.T) {
	t.Parallel()
	const replicas, callers, creates, rounds = 2, 8, 50, 3
	cluster := postgrestest.NewCluster(t)
	address := cluster.CreateDatabase(t)
	parsed, err := url.Parse(address)
	processtest.Must(t, err)
	f := providerdtest.StartFleet(t, address, replicas)
	journal := providerdtest.NewJournal()
	load := journal.Load(callers, "k", func(name string) (providerdtest.Record, error) {
		return providerdtest.ErrorUnlessCreated(f.Create(rand.IntN(replicas), name, ""))
	})
	follower := providerdtest.StartFollower(t, f.Dir, f.Command)
	for range rounds {
		for _, sequence := range []string{"providers_pk_seq", "events_id_seq"} {
			journal.WaitForMore(t, creates)
			cluster.Exec(t, strings.TrimPrefix(parsed.Path, "/"), "SELECT setval('"+sequence+"', 1, false)")
		}
	}
	journal.WaitForMore(t, creates)
	load.Stop()
	journal.Compare(t, f.Stored(t, f.URL))
	pks := map[int64]string{}
	for name, record := range journal.Creates {
		if other, isTaken := pks[record.PK]; isTaken {
			t.Errorf("%s and %s have the pk %d", name, other, record.PK)
		}
		pks[record.PK] = name
	}
	follower.Verify(t)
	f.Stop(t)
}
