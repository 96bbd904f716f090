package providerdtest

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"
)

// Latency is how long a create took, and when it was answered.
type Latency struct{ At, took time.Duration }

// Journal is what callers were answered.
type Journal struct {
	Started time.Time
	mutex   sync.Mutex
	// Creates are those that were acknowledged, by their name, and waits are theirs, in the order of the answers.
	Creates   map[string]Record
	Latencies []Latency
	// Failures are errors by what was sent.
	Failures map[string]error
}

// NewJournal returns one that begins now.
func NewJournal() *Journal {
	return &Journal{Started: time.Now(), Creates: map[string]Record{}, Failures: map[string]error{}}
}

// Load starts callers of which each creates until one of its creates fails.
func (j *Journal) Load(callers int, prefix string, create func(name string) (Record, error)) *Load {
	return StartLoad(callers, func(caller, n int) bool {
		begun, name := time.Now(), fmt.Sprintf("%s-%d-%d", prefix, caller, n)
		one, err := create(name)
		if err != nil {
			j.Fail(name, err)
			return false
		}
		j.Acknowledge(one, begun)
		return true
	})
}

// Acknowledge notes a create that was sent at a time.
func (j *Journal) Acknowledge(one Record, begun time.Time) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.Creates[one.Name] = one
	j.Latencies = append(j.Latencies, Latency{At: time.Since(j.Started), took: time.Since(begun)})
}

// Fail notes an error of what was sent.
func (j *Journal) Fail(sent string, err error) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.Failures[sent] = err
}

// Acknowledged returns a copy of the creates until now.
func (j *Journal) Acknowledged() map[string]Record {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return maps.Clone(j.Creates)
}

// Any returns one of the creates until now.
func (j *Journal) Any() (one Record) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	for _, one = range j.Creates {
		break
	}
	return one
}

// Counts are how many creates were acknowledged until now, and how many requests have failed.
func (j *Journal) Counts() (creates, failed int) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return len(j.Creates), len(j.Failures)
}

// WaitForMore waits for so many creates more, or for one that fails.
func (j *Journal) WaitForMore(t *testing.T, more int) {
	t.Helper()
	first, _ := j.Counts()
	WaitUntil(t, "creates go on", func() bool {
		creates, failed := j.Counts()
		return creates >= first+more || failed > 0
	})
}

// Compare demands that each acknowledged create is stored once as it was answered, that nothing else is, and that none
// has failed.
func (j *Journal) Compare(t *testing.T, stored []Record) {
	t.Helper()
	counts, wrong := map[string]int{}, map[string]Record{}
	for _, one := range stored {
		counts[one.Name]++
		if j.Creates[one.Name] != one {
			wrong[one.Name] = one
		}
	}
	missing := 0
	for name := range j.Creates {
		missing += 1 - min(1, counts[name])
	}
	double := len(stored) - len(counts)
	t.Logf("acknowledged %d, stored %d, missing %d, double %d", len(j.Creates), len(stored), missing, double)
	if missing+double+len(wrong) > 0 {
		t.Errorf("stored are other providers than acknowledged, such as %v", Sample(wrong))
	}
	if len(j.Failures) > 0 {
		t.Errorf("%d requests failed, such as %v", len(j.Failures), Sample(j.Failures))
	}
}

// Sample are a few entries of a map.
func Sample[Value any](all map[string]Value) map[string]Value {
	few := map[string]Value{}
	for key, value := range all {
		if len(few) < 5 {
			few[key] = value
		}
	}
	return few
}

// Milliseconds returns how long creates took, sorted.
func Milliseconds(waits []Latency) (sorted []float64) {
	for _, one := range waits {
		sorted = append(sorted, one.took.Seconds()*1000)
	}
	slices.Sort(sorted)
	return sorted
}

// Quantile is 0 if there are no values.
func Quantile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(share*float64(len(sorted)-1))]
}
