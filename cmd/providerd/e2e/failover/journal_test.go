//go:build proof

package failover_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
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

// entry is a create.
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
	return secretOf(e.name)
}

// failoverJournal records all creates that were sent to a database.
type failoverJournal struct {
	mutex   sync.Mutex
	entries map[string]*entry
	// times are the times of acknowledgments by each replica, ascending.
	times [replicaCount][]time.Time
	// faults are responses that must not occur.
	faults []string
	// slowestRefusal is the longest time until a 503 in this round.
	slowestRefusal time.Duration
}

func (j *failoverJournal) begin(way way, name string) *entry {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	e := &entry{way: way, name: name}
	j.entries[name] = e
	return e
}

// acknowledge records that a replica acknowledged a create.
func (j *failoverJournal) acknowledge(e *entry, pk int64, replica int) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	e.isAcknowledged, e.pk = true, pk
	j.times[replica] = append(j.times[replica], time.Now())
}

func (j *failoverJournal) noteRefusal(took time.Duration) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.slowestRefusal = max(j.slowestRefusal, took)
}

func (j *failoverJournal) noteFault(text string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.faults = append(j.faults, text)
}

// counts returns how many creates each replica has acknowledged.
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

// longestPause returns the longest interval between consecutive times that overlaps the one from begun to ended. The
// times are ascending.
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

// check compares the journal with the stored records. A fault is reported once, even if the create is of another round.
func (j *failoverJournal) check(stored []providerdtest.Record, round int, result *roundResult) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	result.refusal, j.slowestRefusal = j.slowestRefusal, 0
	result.faults, j.faults = j.faults, nil
	found := map[string][]providerdtest.Record{}
	for _, record := range stored {
		found[record.Name] = append(found[record.Name], record)
		if j.entries[record.Name] == nil {
			result.faults = append(result.faults, record.Name+" is stored, but was never sent")
		}
	}
	for name, e := range j.entries {
		if strings.HasPrefix(name, fmt.Sprintf("%d-", round)) {
			result.count(e)
		}
		if !e.isReported {
			e.isReported = e.check(found[name], result)
		}
	}
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
