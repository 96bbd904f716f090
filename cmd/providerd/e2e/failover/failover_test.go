//go:build slow

package failover_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"

	"example.com/providerd/server/contracttest"
)

const (
	// wholeRun is how many rounds a run has of which the figures are kept.
	wholeRun      = 100
	defaultRounds = 15
	replicaCount  = 3
	// roundsOfSite is how many rounds one database serves.
	roundsOfSite = 20
	// acknowledgedBetween is how many creates each replica must have acknowledged before a round goes on.
	acknowledgedBetween = 20
	// maxDelay is how much longer creates may stand still than the database itself.
	maxDelay = 3 * time.Second
	// maxRefusal is the documented bound of 5 seconds, and what a machine takes on which all of this runs.
	maxRefusal = 7 * time.Second
)

// site is the servers that keep the database.
type site interface {
	// restore gives the primary a synchronous standby again.
	restore(t *testing.T)
	// current is the URL of the database on the primary alone.
	current(t *testing.T) string
}

// failoverKind is a fault of a kind of site.
type failoverKind[Site site] struct {
	title string
	// strike lets the fault happen, until a primary is there that can commit.
	strike func(t *testing.T, f *failover, servers Site)
}

// failover is the replicas over a site, and their clients.
type failover struct {
	site    site
	fleet   *providerdtest.Fleet
	token   string
	journal *failoverJournal
	probe   *probe
	round   int
}

// roundResult is what came of one round.
type roundResult struct {
	kind string
	// acknowledged counts creates, and unknown those of which some try had no certain answer.
	acknowledged, unknown int
	missing, double       int
	faults                []string
	// database and creates are how long each stood still, and slowest is how long those of one replica did.
	database, creates, slowest time.Duration
	// refusal is how long a caller waited at most for a 503.
	refusal time.Duration
}

func (r *roundResult) count(one *entry) {
	if one.isAcknowledged {
		r.acknowledged++
	}
	if one.isDoubtful {
		r.unknown++
	}
}

func newFailover(t *testing.T, program string, servers site, url string) *failover {
	t.Helper()
	f := &failover{
		site: servers, fleet: providerdtest.StartFleet(t, program, url, replicaCount), journal: &failoverJournal{entries: map[string]*entry{}},
	}
	token, err := os.ReadFile(filepath.Join(f.fleet.Dir, "data", "initial-token"))
	if err != nil {
		t.Fatal(err)
	}
	f.token = strings.TrimSpace(string(token))
	f.fleet.Client = contracttest.ClientOver(t, &http.Transport{MaxIdleConnsPerHost: failoverClients})
	f.fleet.Client.Transport = refusalTimer{f.fleet.Client.Transport, f.journal}
	f.probe = startProbe(t, url)
	return f
}

// TestFailover takes servers of PostgreSQL, replicas and the network between them away under load. Every acknowledged
// create must be stored once, and creates must stand still little longer than the database.
func TestFailover(t *testing.T) {
	rounds := providerdtest.EnvCount(t, "PROVIDERD_FAILOVER_ROUNDS", defaultRounds)
	var outcomes []roundResult
	plain := spread(plainKinds(), rounds-rounds/5)
	t.Run("plain", func(t *testing.T) {
		outcomes = append(outcomes, runRounds(t, os.Args[0], plain[:len(plain)-rounds/4], newPair)...)
	})
	t.Run("plain, terse and in German", func(t *testing.T) {
		outcomes = append(outcomes, runRounds(t, os.Args[0], plain[len(plain)-rounds/4:], newTerseGermanPair)...)
	})
	t.Run("Patroni", func(t *testing.T) {
		outcomes = append(outcomes, runRounds(t, os.Args[0], spread(patroniKinds(), rounds/5), newManaged)...)
	})
	reportFailover(t, outcomes, rounds)
}

// spread takes the kinds in turns.
func spread[Site site](kinds []failoverKind[Site], rounds int) []failoverKind[Site] {
	return slices.Repeat(kinds, rounds/len(kinds)+1)[:rounds]
}

// runRounds runs a round of each of the kinds, over as few sites as serve them.
func runRounds[Site site](
	t *testing.T, program string, kinds []failoverKind[Site], open func(t *testing.T) (Site, string),
) (outcomes []roundResult) {
	t.Helper()
	for some := range slices.Chunk(kinds, roundsOfSite) {
		t.Run("site", func(t *testing.T) {
			servers, url := open(t)
			f := newFailover(t, program, servers, url)
			for _, kind := range some {
				one := f.run(t, kind.title, func() { kind.strike(t, f, servers) })
				t.Logf("%+v", one)
				outcomes = append(outcomes, one)
			}
		})
	}
	return outcomes
}

// run is one round: creates, a fault among them, creates, and the account.
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
	one := roundResult{kind: kind, database: f.probe.longestPause(struck, recovered)}
	one.creates, one.slowest = f.journal.longestPauses(struck, recovered)
	f.settle(t)
	f.journal.check(f.fleet.Stored(t, f.site.current(t)), f.round, &one)
	return one
}

// awaitAcknowledged returns once each replica has acknowledged some more creates.
func (f *failover) awaitAcknowledged(t *testing.T, kind string) {
	t.Helper()
	first := f.journal.counts()
	providerdtest.WaitUntil(t, kind+", each replica acknowledges creates again", func() bool {
		isDone := true
		for i, count := range f.journal.counts() {
			isDone = isDone && count >= first[i]+acknowledgedBetween
		}
		return isDone
	})
}

// settle retries the creates that are not settled.
func (f *failover) settle(t *testing.T) {
	t.Helper()
	for _, one := range f.journal.open() {
		for tries := 0; !f.send(one, tries%replicaCount); tries++ {
			if tries == 10 {
				t.Fatalf("%s is not settled", one.name)
			}
		}
	}
}
