//go:build slow

package serving_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// TestRefusalsMeetDeadline freezes the primary. Every request must be refused by one deadline that covers the token,
// the queue, the transaction and its outcome. When the primary is back, creates must be stored again.
func TestRefusalsMeetDeadline(t *testing.T) {
	t.Parallel()
	const callers, rounds = 32, 2
	// documented is the limit in the README of store/postgres, and slack is for a busy machine.
	const documented, slack = 5 * time.Second, 4 * time.Second
	cluster := postgrestest.NewCluster(t)
	f := providerdtest.StartFleet(t, cluster.CreateDatabase(t), 1)
	_, err := createWithRetry(f, "before")
	processtest.Must(t, err)
	cluster.Freeze()
	took := make([]time.Duration, callers*rounds)
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for round := range rounds {
				started := time.Now()
				key := fmt.Sprint("refused-", round, "-", caller)
				if status, _, err := f.Create(0, key, ""); err != nil || status != http.StatusServiceUnavailable {
					t.Errorf("status is %d, %v", status, err)
				}
				took[caller*rounds+round] = time.Since(started)
			}
		})
	}
	group.Wait()
	cluster.Thaw()
	slices.Sort(took)
	t.Logf("refusals took %v in the median, %v at most", took[len(took)/2], took[len(took)-1])
	if slowest := took[len(took)-1]; slowest > documented+slack {
		t.Errorf("the slowest refusal took %v, want %v", slowest, documented)
	}
	processtest.WaitUntil(t, "a create is stored", func() bool {
		_, err := createWithRetry(f, "after")
		return err == nil
	})
	f.Stop(t)
}

// TestReplicasShareFewConnections runs replicas that together may open more connections than the server allows. Each
// must stay ready, must authenticate tokens and replay creates, and must close connections that it no longer uses.
func TestReplicasShareFewConnections(t *testing.T) {
	t.Parallel()
	const replicas, callers, creates = 3, 12, 30
	cluster := postgrestest.NewCluster(t)
	address := cluster.CreateDatabase(t)
	location, err := url.Parse(address)
	processtest.Must(t, err)
	cluster.Exec(t, "postgres", "CREATE ROLE providerd LOGIN PASSWORD 'example' CONNECTION LIMIT 20",
		"ALTER DATABASE "+location.Path[1:]+" OWNER TO providerd")
	location.User = url.UserPassword("providerd", "example")
	f := providerdtest.StartFleet(t, location.String(), replicas)
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for i := range creates {
				key := fmt.Sprint(caller, "-", i/2)
				if status, _, err := f.Create((caller+i)%replicas, key, ""); err != nil || status != http.StatusCreated {
					t.Errorf("status is %d, %v", status, err)
				}
				f.Replica((caller+i)%replicas).ExpectReadiness(t, "ready")
			}
		})
	}
	group.Wait()
	// Each replica keeps the connections that it uses, and closes the others.
	cluster.Await(t, "SELECT count(*) <= $1 FROM pg_stat_activity WHERE usename = 'providerd'", 2*replicas)
	f.Stop(t)
}
