//go:build proof

package failover_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/bench/figures"
	"example.com/providerd/cmd/providerd/providerdtest"
)

// kindResults has the rounds of one kind.
type kindResults struct {
	kind   string
	rounds []roundResult
}

// reportFailover fails the test if a create is lost, doubled or late, and saves the figures of a whole run.
func reportFailover(t *testing.T, results []roundResult, rounds int) {
	t.Helper()
	var kinds []*kindResults
	for _, r := range results {
		if r.missing+r.double+len(r.faults) > 0 || r.creates > r.database+maxDelay || r.refusal > maxRefusal {
			t.Errorf("%+v", r)
		}
		at := slices.IndexFunc(kinds, func(known *kindResults) bool { return known.kind == r.kind })
		if at < 0 {
			at, kinds = len(kinds), append(kinds, &kindResults{kind: r.kind})
		}
		kinds[at].rounds = append(kinds[at].rounds, r)
	}
	all := &kindResults{kind: "all", rounds: results}
	t.Log("\n" + failoverTable(append(kinds, all)...))
	if rounds < wholeRun {
		return
	}
	if err := figures.Put(providerdtest.Path(t, "store/postgres/README.md"), "figures: make proof PROOF=failover writes them", failoverTable(all)); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(providerdtest.Path(t, "store/postgres/failover.svg"), []byte(plotFailover(kinds).SVG()), 0o600); err != nil {
		t.Error(err)
	}
}

func (k *kindResults) sum(of func(r roundResult) int) (sum int) {
	for _, r := range k.rounds {
		sum += of(r)
	}
	return sum
}

// times returns the median and the longest time, in seconds.
func (k *kindResults) times(of func(r roundResult) time.Duration) (median, longest float64) {
	var times []time.Duration
	for _, r := range k.rounds {
		times = append(times, of(r))
	}
	slices.Sort(times)
	return times[len(times)/2].Seconds(), times[len(times)-1].Seconds()
}

func databaseTime(r roundResult) time.Duration { return r.database }

func createsTime(r roundResult) time.Duration { return r.creates }

func slowestTime(r roundResult) time.Duration { return r.slowest }

// failoverTable renders the figures in Markdown.
func failoverTable(kinds ...*kindResults) string {
	var text strings.Builder
	text.WriteString("| fault | rounds | acknowledged | unknown at first | missing | doubled | database stalled, s: median, longest | " +
		"creates stalled |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, kind := range kinds {
		databaseMedian, databaseLongest := kind.times(databaseTime)
		createsMedian, createsLongest := kind.times(createsTime)
		fmt.Fprintf(&text, "| %s | %d | %d | %d | %d | %d | %.1f, %.1f | %.1f, %.1f |\n",
			kind.kind, len(kind.rounds),
			kind.sum(func(r roundResult) int { return r.acknowledged }),
			kind.sum(func(r roundResult) int { return r.unknown }),
			kind.sum(func(r roundResult) int { return r.missing }),
			kind.sum(func(r roundResult) int { return r.double }),
			databaseMedian, databaseLongest, createsMedian, createsLongest)
	}
	return text.String()
}

// plotFailover draws the longest stalls.
func plotFailover(kinds []*kindResults) figures.Bars {
	bars := figures.Bars{
		Title:  "longest stall in seconds",
		Series: []string{"the database", "creates", "creates of the slowest replica"},
	}
	for _, kind := range kinds {
		group := figures.Group{Name: kind.kind}
		for _, of := range []func(r roundResult) time.Duration{databaseTime, createsTime, slowestTime} {
			_, longest := kind.times(of)
			group.Values = append(group.Values, longest)
		}
		bars.Groups = append(bars.Groups, group)
	}
	return bars
}
