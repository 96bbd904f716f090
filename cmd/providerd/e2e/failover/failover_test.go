//go:build proof

// Package failover_test makes PostgreSQL servers, replicas and networks fail under load, and accounts for each
// create: no acknowledged one may be missing, and none may be stored twice. Tests of undisturbed replicas are in
// serving, and tests of failover without a server in store/postgres.
//
// Start with TestFailover.
package failover_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

const (
	defaultRounds = 15
	replicaCount  = 3
	// roundsOfSite is how many rounds run on one database.
	roundsOfSite = 20
	// acknowledgedBetween is how many creates each replica must acknowledge before a round continues.
	acknowledgedBetween = 20
	// maxDelay is how much longer creates may stall than the database itself.
	maxDelay = 3 * time.Second
	// maxRefusal is the documented limit of 5 seconds plus a margin for the busy machine.
	maxRefusal = 7 * time.Second
)

func TestMain(m *testing.M) { providerdtest.Main(m) }

// site is the group of servers of a database.
type site interface {
	// faults returns the faults of the servers, and of a fleet that uses them.
	faults(fleet *providerdtest.Fleet) []fault
	// restore gives the primary a new synchronous standby.
	restore(t *testing.T)
	// current returns the URL of the database on the primary only.
	current(t *testing.T) string
}

type fault struct {
	title string
	// strike causes the fault, and returns once a primary can commit.
	strike func(t *testing.T)
}

// failover has the replicas of a site and their clients.
type failover struct {
	site    site
	fleet   *providerdtest.Fleet
	token   string
	journal *failoverJournal
	// repeats is set if clients send only creates without identification, lose the responses of some, and repeat them
	// until they are stored.
	repeats bool
	probe   *probe
	// follower follows the events, of which none may be missing or differ in the end.
	follower *providerdtest.Follower
	round    int
}

func newFailover(t *testing.T, open func(t *testing.T) (site, string)) *failover {
	t.Helper()
	servers, url := open(t)
	f := &failover{
		site: servers, fleet: providerdtest.StartFleet(t, url, replicaCount),
		journal: &failoverJournal{entries: map[string]*entry{}},
	}
	f.token = providerdtest.Token(t, f.fleet.Dir)
	f.fleet.Client = contracttest.ClientOver(t, &http.Transport{MaxIdleConnsPerHost: failoverClients})
	f.probe = startProbe(t, url)
	f.follower = providerdtest.StartFollower(t, f.fleet.Dir, f.fleet.Command)
	return f
}

// TestFailover makes PostgreSQL servers, replicas and the network between them fail under load. Every acknowledged
// create must be stored exactly once, and creates must not stall much longer than the database.
func TestFailover(t *testing.T) {
	rounds := processtest.ProofSize(t, "failover", defaultRounds)
	patroni, terse := rounds/5, rounds/4
	if os.Getenv(postgrestest.ProgramsVariable) != "" {
		// Debian's Patroni supports only Debian's PostgreSQL.
		patroni = 0
	}
	plain := rounds - patroni - terse
	var outcomes []roundResult
	for _, c := range []struct {
		title string
		open  func(t *testing.T) (site, string)
		// The rounds have the faults from number first on, in turn.
		first, rounds int
	}{
		{"plain", newPair, 0, plain},
		{"plain, terse and in German", newTerseGermanPair, plain, terse},
		{"Patroni", newManaged, 0, patroni},
	} {
		t.Run(c.title, func(t *testing.T) {
			for done := 0; done < c.rounds; done += roundsOfSite {
				t.Run("site", func(t *testing.T) {
					f := newFailover(t, c.open)
					faults := f.site.faults(f.fleet)
					for i := range min(roundsOfSite, c.rounds-done) {
						outcomes = append(outcomes, f.run(t, faults[(c.first+done+i)%len(faults)]))
					}
					f.follower.Verify(t)
				})
			}
		})
	}
	reportFailover(t, outcomes, rounds)
}

// run runs one round: creates, a fault, more creates, and the comparison with what is stored.
func (f *failover) run(t *testing.T, kind fault) roundResult {
	t.Helper()
	f.round++
	load := f.load()
	f.awaitAcknowledged(t, kind.title)
	struck := time.Now()
	kind.strike(t)
	f.awaitAcknowledged(t, kind.title)
	recovered := time.Now()
	f.site.restore(t)
	f.awaitAcknowledged(t, kind.title)
	load.Stop()
	f.settle(t)
	result := f.journal.check(f.fleet.Stored(t, f.site.current(t)), f.round)
	result.kind, result.database = kind.title, f.probe.longestPause(struck, recovered)
	result.creates, result.slowest = f.journal.longestPauses(struck, recovered)
	t.Logf("%+v", result)
	return result
}

// awaitAcknowledged waits until each replica has acknowledged acknowledgedBetween more creates.
func (f *failover) awaitAcknowledged(t *testing.T, kind string) {
	t.Helper()
	first := f.journal.counts()
	processtest.WaitUntil(t, kind+", each replica acknowledges creates again", func() bool {
		isDone := true
		for i, count := range f.journal.counts() {
			isDone = isDone && count >= first[i]+acknowledgedBetween
		}
		return isDone
	})
}

func (f *failover) settle(t *testing.T) {
	for _, e := range f.journal.open() {
		for tries := 0; !f.send(e, tries%replicaCount); tries++ {
			processtest.Require(t, tries != 10, "%s is not settled", e.name)
		}
	}
}

// TestFailoverFindsInjectedFaults runs rounds with commits that do not wait for the standby, and rounds with clients
// that repeat creates as new ones when they did not get the response. The comparison must find losses and doubles.
func TestFailoverFindsInjectedFaults(t *testing.T) {
	for _, c := range []struct {
		title, kinds string
		open         func(t *testing.T) (site, string)
		repeats      bool
		count        func(r roundResult) int
	}{
		{"losses", "standby promoted", newAsynchronousPair, false, func(r roundResult) int { return r.missing }},
		{"doubles", "standby back", newPair, true, func(r roundResult) int { return r.double }},
	} {
		t.Run(c.title, func(t *testing.T) {
			f := newFailover(t, c.open)
			f.repeats = c.repeats
			found := 0
			for _, kind := range f.site.faults(f.fleet) {
				if strings.Contains(kind.title, c.kinds) {
					found += c.count(f.run(t, kind))
				}
			}
			processtest.Expect(t, found != 0, "the comparison found nothing")
		})
	}
}
