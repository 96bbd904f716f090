//go:build failover

package main

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// way is how a create is told from others, and so how a retry finds it.
type way string

const (
	// byKey has an idempotency key, and goes through the SDK.
	byKey way = "key"
	// byClientID has none; its client_id is unique.
	byClientID way = "client"
	// byNothing cannot be told from others, and is sent once.
	byNothing way = "bare"
)

// entry is a create that was sent.
type entry struct {
	way  way
	name string
	// begun is when it was first sent.
	begun time.Time
	// The rest is valid once its client has left it.
	acknowledged time.Time
	// pk is 0 where the answer did not tell it: 409 for a client_id.
	pk int32
	// isDoubtful tells that some try may have stored it.
	isDoubtful bool
	// isTold tells that it is known to be wrong.
	isTold bool
}

func (e *entry) isAcknowledged() bool { return !e.acknowledged.IsZero() }

// storedRow is what is found of a create.
type storedRow struct {
	pk  int32
	key string
}

// journal is all creates that were sent to a database.
type journal struct {
	mutex   sync.Mutex
	entries map[string]*entry
	// times are those of the acknowledgements by each replica, ascending.
	times [replicaCount][]time.Time
	// wrong are answers that must not be.
	wrong []string
	// slowestRefusal is how long a caller waited at most for a 503 in this round.
	slowestRefusal time.Duration
}

func newJournal() *journal { return &journal{entries: map[string]*entry{}} }

func (j *journal) begin(way way, name string) *entry {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	one := &entry{way: way, name: name, begun: time.Now()}
	j.entries[name] = one
	return one
}

// acknowledge notes the answer of a replica.
func (j *journal) acknowledge(one *entry, pk int32, replica int) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	one.acknowledged, one.pk = time.Now(), pk
	j.times[replica] = append(j.times[replica], one.acknowledged)
}

func (j *journal) noteRefusal(took time.Duration) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.slowestRefusal = max(j.slowestRefusal, took)
}

func (j *journal) takeSlowestRefusal() time.Duration {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	slowest := j.slowestRefusal
	j.slowestRefusal = 0
	return slowest
}

func (j *journal) complain(text string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.wrong = append(j.wrong, text)
}

// counts are how many creates each replica has acknowledged.
func (j *journal) counts() (counts [replicaCount]int) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	for i, times := range j.times {
		counts[i] = len(times)
	}
	return counts
}

// acknowledgedWithin counts the creates that were begun and acknowledged in a time.
func (j *journal) acknowledgedWithin(from, to time.Time) int {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	count := 0
	for _, one := range j.entries {
		if one.isAcknowledged() && one.begun.After(from) && one.acknowledged.Before(to) {
			count++
		}
	}
	return count
}

// open returns the creates of which nobody knows whether they are stored.
func (j *journal) open() []*entry {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Values(j.entries)), func(one *entry) bool {
		return one.isAcknowledged() || one.way == byNothing
	})
}

// longestPauses tell how long no replica has acknowledged anything, and how long the slowest has not.
func (j *journal) longestPauses(begun, ended time.Time) (all, slowest time.Duration) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	var together []time.Time
	for _, times := range j.times {
		together = append(together, times...)
		slowest = max(slowest, longestPause(times, begun, ended))
	}
	slices.SortFunc(together, time.Time.Compare)
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

// audit is what the journal and the database say together.
type audit struct {
	// acknowledged counts creates, and unknown those of which some try had no certain answer.
	acknowledged, unknown int
	missing, double       int
	faults                []string
}

// check compares the journal with what is stored, by name. What is wrong with a create is told once.
func (j *journal) check(found map[string][]storedRow) audit {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	result := audit{faults: j.wrong}
	j.wrong = nil
	for name, one := range j.entries {
		if one.isAcknowledged() {
			result.acknowledged++
		}
		if one.isDoubtful {
			result.unknown++
		}
		if !one.isTold {
			one.isTold = one.check(found[name], &result)
		}
	}
	for name := range found {
		if j.entries[name] == nil {
			result.faults = append(result.faults, name+" is stored, and nobody sent it")
		}
	}
	return result
}

// check tells whether something is wrong with the rows that a create made.
func (e *entry) check(rows []storedRow, result *audit) (wrong bool) {
	switch {
	case len(rows) > 1:
		result.double++
	case e.isAcknowledged() && (len(rows) == 0 || e.pk != 0 && rows[0].pk != e.pk):
		result.missing++
	case len(rows) == 0:
		return false
	case e.way == byKey && rows[0].key != e.name:
		result.faults = append(result.faults, e.name+" is stored with another key")
	case !e.isAcknowledged() && !e.isDoubtful:
		result.faults = append(result.faults, e.name+" is stored, though it was refused")
	default:
		return false
	}
	return true
}
