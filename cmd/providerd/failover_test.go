//go:build failover

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/server/contracttest"
	"example.com/providerd/store"
	"example.com/providerd/store/postgres"
)

const (
	// wholeRun is how many rounds a run has of which the figures are kept.
	wholeRun      = 100
	defaultRounds = 15
	// roundsOfSite is how many rounds one database serves.
	roundsOfSite = 20
	// acknowledgedBetween is how many creates each replica must have acknowledged before a round goes on.
	acknowledgedBetween = 20
	recoveryTimeout     = 90 * time.Second
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
	fleet   *mortalFleet
	caller  *caller
	journal *journal
	probe   *probe
	round   int
	// windows are the times of the round in which no standby was there.
	windows [][2]time.Time
	// before is the account of the last round.
	before audit
}

// roundResult is what came of one round.
type roundResult struct {
	kind                                           string
	acknowledged, unknown, missing, double, faults int
	// database and creates are how long each stood still, and slowest is how long those of one replica did.
	database, creates, slowest time.Duration
	// refusal is how long a caller waited at most for a 503.
	refusal time.Duration
}

func newFailover(t *testing.T, program string, servers site, url string) *failover {
	t.Helper()
	f := &failover{site: servers, fleet: startMortals(t, program, url), journal: newJournal()}
	f.caller = &caller{
		fleet: f.fleet, journal: f.journal, token: f.fleet.token(t),
		http: contracttest.ClientOver(t, &http.Transport{MaxIdleConnsPerHost: failoverClients}),
	}
	f.caller.http.Transport = refusalTimer{f.caller.http.Transport, f.journal}
	f.probe = startProbe(t, url)
	return f
}

// TestFailover takes servers of PostgreSQL, replicas and the network between them away under load. Every acknowledged
// create must be stored once, and creates must stand still little longer than the database.
func TestFailover(t *testing.T) {
	rounds := countFrom(t, "PROVIDERD_FAILOVER_ROUNDS", defaultRounds)
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
			f.compareContent(t)
		})
	}
	return outcomes
}

// run is one round: creates, a fault among them, creates, and the account.
func (f *failover) run(t *testing.T, kind string, strike func()) roundResult {
	t.Helper()
	f.round++
	f.windows = nil
	stop := make(chan struct{})
	var group sync.WaitGroup
	for i := range failoverClients {
		group.Go(func() { f.caller.run(stop, fmt.Sprintf("%d-%d", f.round, i)) })
	}
	f.awaitAcknowledged(t, kind)
	struck := time.Now()
	strike()
	f.awaitAcknowledged(t, kind)
	recovered := time.Now()
	f.site.restore(t)
	f.awaitAcknowledged(t, kind)
	close(stop)
	group.Wait()
	one := roundResult{kind: kind, database: f.probe.longestPause(struck, recovered)}
	one.creates, one.slowest = f.journal.longestPauses(struck, recovered)
	one.refusal = f.journal.takeSlowestRefusal()
	f.settle(t)
	f.account(t, &one)
	return one
}

// awaitAcknowledged returns once each replica has acknowledged some more creates.
func (f *failover) awaitAcknowledged(t *testing.T, kind string) {
	t.Helper()
	first := f.journal.counts()
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	late := time.NewTimer(recoveryTimeout)
	defer late.Stop()
	for {
		counts := f.journal.counts()
		isDone := true
		for i, count := range counts {
			isDone = isDone && count >= first[i]+acknowledgedBetween
		}
		if isDone {
			return
		}
		select {
		case <-ticks.C:
		case <-late.C:
			t.Fatalf("%s: the replicas acknowledged %v creates, %v before: %s", kind, counts, first, f.fleet.logs())
		}
	}
}

// withoutStandby does something while commits have no standby to wait for.
func (f *failover) withoutStandby(t *testing.T, do func()) {
	t.Helper()
	begun := time.Now()
	do()
	f.windows = append(f.windows, [2]time.Time{begun, time.Now()})
}

// settle retries the creates that are not settled.
func (f *failover) settle(t *testing.T) {
	t.Helper()
	for _, one := range f.journal.open() {
		for tries := 0; !f.caller.send(one, tries%replicaCount); tries++ {
			if tries == 10 {
				t.Fatalf("%s is not settled: %s", one.name, f.fleet.logs())
			}
		}
	}
}

// account compares what was acknowledged with what is stored.
func (f *failover) account(t *testing.T, one *roundResult) {
	t.Helper()
	result := f.journal.check(f.stored(t))
	one.acknowledged, one.unknown = result.acknowledged-f.before.acknowledged, result.unknown-f.before.unknown
	one.missing, one.double = result.missing, result.double
	f.before = result
	for _, window := range f.windows {
		if count := f.journal.acknowledgedWithin(window[0], window[1]); count > 0 {
			result.faults = append(result.faults, fmt.Sprintf("%d creates are acknowledged without a standby", count))
		}
	}
	one.faults = len(result.faults)
	for _, fault := range result.faults[:min(5, len(result.faults))] {
		t.Logf("%s: %s", one.kind, fault)
	}
}

// stored are the records on the primary by their name.
func (f *failover) stored(t *testing.T) map[string][]storedRow {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), recoveryTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, f.site.current(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	found := map[string][]storedRow{}
	rows, err := conn.Query(ctx, "SELECT name, pk, coalesce(idempotency_key, '') FROM providers")
	if err != nil {
		t.Fatal(err)
	}
	var name string
	var row storedRow
	_, err = pgx.ForEachRow(rows, []any{&name, &row.pk, &row.key}, func() error {
		found[name] = append(found[name], row)
		return nil
	})
	if err != nil {
		t.Fatal(errors.Join(err, ctx.Err()))
	}
	return found
}

// compareContent reads all records as the program does, and compares each with what was sent.
func (f *failover) compareContent(t *testing.T) {
	t.Helper()
	location, err := postgres.ParseURL(f.site.current(t))
	if err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Open(t.Context(), location, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	database, err := store.Open(t.Context(), db, filepath.Join(f.fleet.folder, "keyset.json"))
	if err != nil {
		t.Fatal(err)
	}
	for record, err := range database.Providers(t.Context(), store.Filter{}, 0) {
		if err != nil {
			t.Error(err)
			continue
		}
		name := record.Common().Name
		switch record := record.(type) {
		case store.OAuth2Provider:
			if record.ClientID != name || record.ClientSecret.Reveal() != secretOf(name) {
				t.Errorf("%s has other content", name)
			}
		case store.WorkspaceDirectoryProvider:
			if record.DelegatedSubject != subjectOf(name) || record.Credentials.Reveal() != credentialsOf(name) {
				t.Errorf("%s has other content", name)
			}
		}
	}
	if err := database.Close(); err != nil {
		t.Error(err)
	}
}
