//go:build proof

package failover_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

const (
	// wholeRun is the number of rounds from which the figures are saved.
	wholeRun      = 100
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

// site is the group of servers of a database.
type site interface {
	// restore gives the primary a new synchronous standby.
	restore(t *testing.T)
	// current returns the URL of the database on the primary only.
	current(t *testing.T) string
}

// failoverKind is a kind of fault.
type failoverKind[Site site] struct {
	title string
	// strike causes the fault, and returns once a primary can commit.
	strike func(t *testing.T, f *failover, servers Site)
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

// roundResult is the result of one round.
type roundResult struct {
	kind string
	// acknowledged counts creates, and unknown creates with at least one attempt of unknown outcome.
	acknowledged, unknown int
	missing, double       int
	faults                []string
	// database and creates are how long each stalled, and slowest is how long creates of the slowest replica did.
	database, creates, slowest time.Duration
	// refusal is the longest time until a 503.
	refusal time.Duration
}

func (r *roundResult) count(e *entry) {
	if e.isAcknowledged {
		r.acknowledged++
	}
	if e.mayBeStored {
		r.unknown++
	}
}

func newFailover(t *testing.T, servers site, url string) *failover {
	t.Helper()
	f := &failover{
		site: servers, fleet: providerdtest.StartFleet(t, url, replicaCount),
		journal: &failoverJournal{entries: map[string]*entry{}},
	}
	f.token = providerdtest.Token(t, f.fleet.Dir)
	f.fleet.Client = contracttest.ClientOver(t, &http.Transport{MaxIdleConnsPerHost: failoverClients})
	f.fleet.Client.Transport = refusalTimer{f.fleet.Client.Transport, f.journal}
	f.probe = startProbe(t, url)
	f.follower = providerdtest.StartFollower(t, f.fleet.Dir, f.fleet.Command)
	return f
}

// TestFailover makes PostgreSQL servers, replicas and the network between them fail under load. Every acknowledged
// create must be stored exactly once, and creates must not stall much longer than the database.
func TestFailover(t *testing.T) {
	rounds := processtest.ProofSize(t, "failover", defaultRounds)
	var outcomes []roundResult
	plain := spread(plainKinds(), rounds-rounds/5)
	t.Run("plain", func(t *testing.T) {
		outcomes = append(outcomes, runRounds(t, plain[:len(plain)-rounds/4], newPair)...)
	})
	t.Run("plain, terse and in German", func(t *testing.T) {
		outcomes = append(outcomes, runRounds(t, plain[len(plain)-rounds/4:], newTerseGermanPair)...)
	})
	t.Run("Patroni", func(t *testing.T) {
		outcomes = append(outcomes, runRounds(t, spread(patroniKinds(), rounds/5), newManaged)...)
	})
	reportFailover(t, outcomes, rounds)
}

// spread repeats the kinds in turn.
func spread[Site site](kinds []failoverKind[Site], rounds int) []failoverKind[Site] {
	return slices.Repeat(kinds, rounds/len(kinds)+1)[:rounds]
}

// runRounds runs one round per kind, on as few sites as possible.
func runRounds[Site site](
	t *testing.T, kinds []failoverKind[Site], open func(t *testing.T) (Site, string),
) (outcomes []roundResult) {
	t.Helper()
	for chunk := range slices.Chunk(kinds, roundsOfSite) {
		t.Run("site", func(t *testing.T) {
			servers, url := open(t)
			f := newFailover(t, servers, url)
			for _, kind := range chunk {
				result := f.run(t, kind.title, func() { kind.strike(t, f, servers) })
				t.Logf("%+v", result)
				outcomes = append(outcomes, result)
			}
			f.follower.Verify(t)
		})
	}
	return outcomes
}

// run runs one round: creates, a fault, more creates, and the comparison with what is stored.
func (f *failover) run(t *testing.T, kind string, strike func()) roundResult {
	t.Helper()
	f.round++
	load := f.load()
	f.awaitAcknowledged(t, kind)
	struck := time.Now()
	strike()
	f.awaitAcknowledged(t, kind)
	recovered := time.Now()
	f.site.restore(t)
	f.awaitAcknowledged(t, kind)
	load.Stop()
	result := roundResult{kind: kind, database: f.probe.longestPause(struck, recovered)}
	result.creates, result.slowest = f.journal.longestPauses(struck, recovered)
	f.settle(t)
	f.journal.check(f.fleet.Stored(t, f.site.current(t)), f.round, &result)
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

// settle retries the unsettled creates.
func (f *failover) settle(t *testing.T) {
	t.Helper()
	for _, e := range f.journal.open() {
		for tries := 0; !f.send(e, tries%replicaCount); tries++ {
			if tries == 10 {
				t.Fatalf("%s is not settled", e.name)
			}
		}
	}
}
