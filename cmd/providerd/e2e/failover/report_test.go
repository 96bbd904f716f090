//go:build slow

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

// kindResults are the rounds of one kind.
type kindResults struct {
	kind   string
	rounds []roundResult
}

// reportFailover fails the test where something is lost or late, and writes the figures of a whole run.
func reportFailover(t *testing.T, results []roundResult, rounds int) {
	t.Helper()
	var kinds []*kindResults
	for _, one := range results {
		if one.missing+one.double+len(one.faults) > 0 || one.creates > one.database+maxDelay || one.refusal > maxRefusal {
			t.Errorf("%+v", one)
		}
		at := slices.IndexFunc(kinds, func(known *kindResults) bool { return known.kind == one.kind })
		if at < 0 {
			at, kinds = len(kinds), append(kinds, &kindResults{kind: one.kind})
		}
		kinds[at].rounds = append(kinds[at].rounds, one)
	}
	text := failoverTable(kinds)
	t.Log("\n" + text)
	if rounds < wholeRun {
		return
	}
	if err := figures.Put(providerdtest.Path(t, "store/postgres/README.md"), "figures: make failover writes them", text); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(providerdtest.Path(t, "store/postgres/failover.svg"), []byte(plotFailover(kinds).SVG()), 0o600); err != nil {
		t.Error(err)
	}
}

func (k *kindResults) sum(of func(one roundResult) int) (sum int) {
	for _, one := range k.rounds {
		sum += of(one)
	}
	return sum
}

// times returns the middle and the longest of the times, in seconds.
func (k *kindResults) times(of func(one roundResult) time.Duration) (middle, longest float64) {
	var times []time.Duration
	for _, one := range k.rounds {
		times = append(times, of(one))
	}
	slices.Sort(times)
	return times[len(times)/2].Seconds(), times[len(times)-1].Seconds()
}

func databaseTime(one roundResult) time.Duration { return one.database }

func createsTime(one roundResult) time.Duration { return one.creates }

func slowestTime(one roundResult) time.Duration { return one.slowest }

func refusalTime(one roundResult) time.Duration { return one.refusal }

// failoverTable renders the figures in Markdown.
func failoverTable(kinds []*kindResults) string {
	all := &kindResults{kind: "all"}
	for _, kind := range kinds {
		all.rounds = append(all.rounds, kind.rounds...)
	}
	var text strings.Builder
	text.WriteString("| what happens | rounds | acknowledged | unknown at first | missing | double | the database stands " +
		"still, s: median, longest | creates | creates of the slowest replica | most that creates took longer | slowest 503 |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, kind := range append(kinds, all) {
		databaseMiddle, databaseLongest := kind.times(databaseTime)
		createsMiddle, createsLongest := kind.times(createsTime)
		slowestMiddle, slowestLongest := kind.times(slowestTime)
		_, later := kind.times(func(one roundResult) time.Duration { return one.creates - one.database })
		_, refusal := kind.times(refusalTime)
		fmt.Fprintf(&text, "| %s | %d | %d | %d | %d | %d | %.1f, %.1f | %.1f, %.1f | %.1f, %.1f | %.1f | %.1f |\n",
			kind.kind, len(kind.rounds),
			kind.sum(func(one roundResult) int { return one.acknowledged }),
			kind.sum(func(one roundResult) int { return one.unknown }),
			kind.sum(func(one roundResult) int { return one.missing }),
			kind.sum(func(one roundResult) int { return one.double }),
			databaseMiddle, databaseLongest, createsMiddle, createsLongest, slowestMiddle, slowestLongest, later, refusal)
	}
	return text.String()
}

// plotFailover draws the longest times.
func plotFailover(kinds []*kindResults) figures.Bars {
	bars := figures.Bars{
		Title:  "longest standstill in seconds",
		Series: []string{"the database", "creates", "creates of the slowest replica"},
	}
	for _, kind := range kinds {
		group := figures.Group{Name: kind.kind}
		for _, of := range []func(one roundResult) time.Duration{databaseTime, createsTime, slowestTime} {
			_, longest := kind.times(of)
			group.Values = append(group.Values, longest)
		}
		bars.Groups = append(bars.Groups, group)
	}
	return bars
}
