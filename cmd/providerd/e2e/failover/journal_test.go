//go:build proof

package failover_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/providerd/cmd/bench/figures"
	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// way is how a create is identified, and so how a retry finds it.
type way int

const (
	// byKey has an idempotency key, and goes through the SDK.
	byKey way = iota
	// byClientID has none; its client_id is unique.
	byClientID
	// byNone has no identification, and is sent once.
	byNone
)

type entry struct {
	way  way
	name string
	// The other fields are valid once its client no longer sends it.
	isAcknowledged bool
	// pk is 0 if the response does not have it, as a 409 for a client_id.
	pk int64
	// mayBeStored is set if a try has an unknown outcome.
	mayBeStored bool
	// isReported is set once a fault was reported.
	isReported bool
}

func (e *entry) secret() string {
	if e.way == byNone {
		return fmt.Sprintf(`{"key":%q}`, e.name)
	}
	return "secret of " + e.name
}

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

// failoverJournal records all creates that were sent to a database.
type failoverJournal struct {
	mutex   sync.Mutex
	entries map[string]*entry
	// times are the times of acknowledgments by each replica, ascending.
	times [replicaCount][]time.Time
	// result is that of the running round.
	result roundResult
}

func (j *failoverJournal) begin(way way, name string) *entry {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	e := &entry{way: way, name: name}
	j.entries[name] = e
	return e
}

func (j *failoverJournal) acknowledge(e *entry, pk int64, replica int) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	e.isAcknowledged, e.pk = true, pk
	j.times[replica] = append(j.times[replica], time.Now())
}

func (j *failoverJournal) noteRefusal(took time.Duration) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.result.refusal = max(j.result.refusal, took)
}

func (j *failoverJournal) noteFault(text string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.result.faults = append(j.result.faults, text)
}

func (j *failoverJournal) counts() (counts [replicaCount]int) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	for i, times := range j.times {
		counts[i] = len(times)
	}
	return counts
}

// open returns the creates that are not known to be stored and can be retried.
func (j *failoverJournal) open() []*entry {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Values(j.entries)), func(e *entry) bool {
		return e.isAcknowledged || e.way == byNone
	})
}

// longestPauses returns the longest time without any acknowledgment, and without one of the slowest replica.
func (j *failoverJournal) longestPauses(begun, ended time.Time) (all, slowest time.Duration) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	for _, times := range j.times {
		slowest = max(slowest, longestPause(times, begun, ended))
	}
	together := slices.SortedFunc(slices.Values(slices.Concat(j.times[:]...)), time.Time.Compare)
	return longestPause(together, begun, ended), slowest
}

// longestPause returns the longest interval between two of the ascending times that overlaps begun to ended.
func longestPause(times []time.Time, begun, ended time.Time) time.Duration {
	last, longest := begun, time.Duration(0)
	for _, at := range times {
		if at.After(ended) {
			break
		}
		if at.After(begun) {
			longest = max(longest, at.Sub(last))
		}
		last = at
	}
	return max(longest, ended.Sub(last))
}

// check compares the journal with the stored records. It reports a fault once, even if the create is of another round.
func (j *failoverJournal) check(stored []providerdtest.Record, round int) roundResult {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	result := j.result
	j.result = roundResult{}
	found := map[string][]providerdtest.Record{}
	for _, record := range stored {
		found[record.Name] = append(found[record.Name], record)
		if j.entries[record.Name] == nil {
			result.faults = append(result.faults, record.Name+" is stored, but was never sent")
		}
	}
	for name, e := range j.entries {
		isOfRound := strings.HasPrefix(name, fmt.Sprintf("%d-", round))
		if isOfRound && e.isAcknowledged {
			result.acknowledged++
		}
		if isOfRound && e.mayBeStored {
			result.unknown++
		}
		if !e.isReported {
			e.isReported = e.check(found[name], &result)
		}
	}
	return result
}

// check reports whether the records of a create are wrong.
func (e *entry) check(rows []providerdtest.Record, result *roundResult) (wrong bool) {
	switch {
	case len(rows) > 1:
		result.double++
	case e.isAcknowledged && (len(rows) == 0 || e.pk != 0 && rows[0].PK != e.pk):
		result.missing++
	case len(rows) == 0:
		return false
	case rows[0].Secret != e.secret():
		result.faults = append(result.faults, e.name+" has another secret")
	case !e.isAcknowledged && !e.mayBeStored:
		result.faults = append(result.faults, e.name+" is stored, but was refused")
	default:
		return false
	}
	return true
}

const tableHeading = "| fault | rounds | acknowledged | unknown at first | missing | doubled | database stalled, s: median, longest | " +
	"creates stalled |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"

// reportFailover fails the test if a create is lost, doubled or late, and saves the figures of a whole run.
func reportFailover(t *testing.T, results []roundResult, rounds int) {
	var kinds []string
	ofKind := map[string][]roundResult{}
	for _, r := range results {
		processtest.Expect(t, r.missing+r.double+len(r.faults) == 0 && r.creates <= r.database+maxDelay &&
			r.refusal <= maxRefusal, "%+v", r)
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
	const wholeRun = 100
	if rounds < wholeRun || os.Getenv(postgrestest.ProgramsVariable) != "" {
		return
	}
	readme, svg := providerdtest.Path(t, "store/postgres/README.md"), providerdtest.Path(t, "store/postgres/failover.svg")
	processtest.Must(t, figures.Put(readme, "figures: make proof PROOF=failover writes them", tableHeading+all),
		os.WriteFile(svg, []byte(bars.SVG()), 0o600))
}

// summarize returns a row of the table, and how long the database, creates and the slowest replica stalled, in s.
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
