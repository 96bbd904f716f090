//go:build proof

package failover_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"example.com/providerd/cmd/bench/figures"
	"example.com/providerd/cmd/providerd/providerdtest"
)

// tableHeading begins the table of figures in Markdown.
const tableHeading = "| fault | rounds | acknowledged | unknown at first | missing | doubled | database stalled, s: median, longest | " +
	"creates stalled |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"

// reportFailover fails the test if a create is lost, doubled or late, and saves the figures of a whole run.
func reportFailover(t *testing.T, results []roundResult, rounds int) {
	t.Helper()
	var kinds []string
	ofKind := map[string][]roundResult{}
	for _, r := range results {
		if r.missing+r.double+len(r.faults) > 0 || r.creates > r.database+maxDelay || r.refusal > maxRefusal {
			t.Errorf("%+v", r)
		}
		if ofKind[r.kind] == nil {
			kinds = append(kinds, r.kind)
		}
		ofKind[r.kind] = append(ofKind[r.kind], r)
	}
	table, bars := "\n"+tableHeading, figures.Bars{
		Title:  "longest stall in seconds",
		Series: []string{"the database", "creates", "creates of the slowest replica"},
	}
	for _, kind := range kinds {
		row, longest := summarize(kind, ofKind[kind])
		table += row
		bars.Groups = append(bars.Groups, figures.Group{Name: kind, Values: longest})
	}
	all, _ := summarize("all", results)
	t.Log(table + all)
	if rounds < wholeRun {
		return
	}
	readme := providerdtest.Path(t, "store/postgres/README.md")
	if err := figures.Put(readme, "figures: make proof PROOF=failover writes them", tableHeading+all); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(providerdtest.Path(t, "store/postgres/failover.svg"), []byte(bars.SVG()), 0o600); err != nil {
		t.Error(err)
	}
}

// summarize returns a row of the table for some rounds, and how long the database, creates, and creates of the slowest
// replica stalled at most, in seconds.
func summarize(title string, rounds []roundResult) (row string, longest []float64) {
	var sum roundResult
	stalls := make([][]float64, 3)
	for _, r := range rounds {
		sum.acknowledged += r.acknowledged
		sum.unknown += r.unknown
		sum.missing += r.missing
		sum.double += r.double
		for i, stall := range []float64{r.database.Seconds(), r.creates.Seconds(), r.slowest.Seconds()} {
			stalls[i] = append(stalls[i], stall)
		}
	}
	var medians []float64
	for _, times := range stalls {
		slices.Sort(times)
		medians, longest = append(medians, times[len(times)/2]), append(longest, times[len(times)-1])
	}
	row = fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %.1f, %.1f | %.1f, %.1f |\n", title, len(rounds), sum.acknowledged,
		sum.unknown, sum.missing, sum.double, medians[0], longest[0], medians[1], longest[1])
	return row, longest
}
