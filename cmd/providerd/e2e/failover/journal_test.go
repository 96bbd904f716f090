//go:build slow

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

// way is how a create is told from others, and so how a retry finds it.
type way int

const (
	// byKey has an idempotency key, and goes through the SDK.
	byKey way = iota
	// byClientID has none; its client_id is unique.
	byClientID
	// byNothing cannot be told from others, and is sent once.
	byNothing
)

// entry is a create that was sent.
type entry struct {
	way  way
	name string
	// The rest is valid once its client has left it.
	isAcknowledged bool
	// pk is 0 where the answer did not tell it: 409 for a client_id.
	pk int32
	// isDoubtful tells that some try may have stored it.
	isDoubtful bool
	// isTold tells that it is known to be wrong.
	isTold bool
}

func (e *entry) secret() string {
	if e.way == byNothing {
		return fmt.Sprintf(`{"key":%q}`, e.name)
	}
	return secretOf(e.name)
}

// failoverJournal is all creates that were sent to a database.
type failoverJournal struct {
	mutex   sync.Mutex
	entries map[string]*entry
	// times are those of the acknowledgements by each replica, ascending.
	times [replicaCount][]time.Time
	// wrong are answers that must not be.
	wrong []string
	// slowestRefusal is how long a caller waited at most for a 503 in this round.
	slowestRefusal time.Duration
}

func (j *failoverJournal) begin(way way, name string) *entry {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	one := &entry{way: way, name: name}
	j.entries[name] = one
	return one
}

// acknowledge notes the answer of a replica.
func (j *failoverJournal) acknowledge(one *entry, pk int32, replica int) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	one.isAcknowledged, one.pk = true, pk
	j.times[replica] = append(j.times[replica], time.Now())
}

func (j *failoverJournal) noteRefusal(took time.Duration) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.slowestRefusal = max(j.slowestRefusal, took)
}

func (j *failoverJournal) complain(text string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.wrong = append(j.wrong, text)
}

// counts are how many creates each replica has acknowledged.
func (j *failoverJournal) counts() (counts [replicaCount]int) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	for i, times := range j.times {
		counts[i] = len(times)
	}
	return counts
}

// open returns the creates of which nobody knows whether they are stored.
func (j *failoverJournal) open() []*entry {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Values(j.entries)), func(one *entry) bool {
		return one.isAcknowledged || one.way == byNothing
	})
}

// longestPauses tell how long no replica has acknowledged anything, and how long the slowest has not.
func (j *failoverJournal) longestPauses(begun, ended time.Time) (all, slowest time.Duration) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	for _, times := range j.times {
		slowest = max(slowest, longestPause(times, begun, ended))
	}
	together := slices.SortedFunc(slices.Values(slices.Concat(j.times[:]...)), time.Time.Compare)
	return longestPause(together, begun, ended), slowest
}

// longestPause is the longest time between two of the times, which ascend, that reaches into the one from begun to ended.
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

// check compares the journal with what is stored. What is wrong with a create is told once, whatever round it is of.
func (j *failoverJournal) check(stored []providerdtest.Record, round int, result *roundResult) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	result.refusal, j.slowestRefusal = j.slowestRefusal, 0
	result.faults, j.wrong = j.wrong, nil
	found := map[string][]providerdtest.Record{}
	for _, one := range stored {
		found[one.Name] = append(found[one.Name], one)
		if j.entries[one.Name] == nil {
			result.faults = append(result.faults, one.Name+" is stored, and nobody sent it")
		}
	}
	for name, one := range j.entries {
		if strings.HasPrefix(name, fmt.Sprintf("%d-", round)) {
			result.count(one)
		}
		if !one.isTold {
			one.isTold = one.check(found[name], result)
		}
	}
}

// check tells whether something is wrong with the rows that a create made.
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
	case !e.isAcknowledged && !e.isDoubtful:
		result.faults = append(result.faults, e.name+" is stored, though it was refused")
	default:
		return false
	}
	return true
}
