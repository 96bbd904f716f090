package store

import (
	"sync/atomic"
	"time"
)

// Timing holds the times of a create's steps. A time is zero if the create did not reach the step.
type Timing struct {
	// Queued is when it began to wait for its transaction.
	Queued time.Time
	// Begun is when its transaction began, and Ended when it was durable or had failed.
	Begun, Ended time.Time
	// BatchSize is the number of creates in the transaction.
	BatchSize int
	// HasFailed is true if the transaction failed, and with it all of its creates.
	HasFailed bool
}

// queued records when a create was queued, if its caller wants its timing.
func (c *create) queued() {
	if c.timing != nil {
		c.timing.Queued = time.Now()
	}
}

// recordTiming records the transaction that has just ended, for callers that want the timing of their create.
func (b batch) recordTiming(begun time.Time, err error) {
	var ended time.Time
	for _, c := range b {
		if c.timing == nil {
			continue
		}
		if ended.IsZero() {
			ended = time.Now()
		}
		c.timing.Begun, c.timing.Ended = begun, ended
		c.timing.BatchSize, c.timing.HasFailed = len(b), err != nil
	}
}

// create is a create in flight.
type create struct {
	creation Creation
	// digest is that of the body; nil without a key.
	digest   []byte
	settings settings
	// validateOnly is true if nothing must be stored.
	validateOnly bool
	// timing is filled in unless it is nil.
	timing *Timing
	// deadline is when its caller gives up; the zero time for never.
	deadline time.Time
	// claimed is set by the first of the batcher, which starts it, and the caller, which cancels it.
	claimed atomic.Bool
	done    chan struct{}
	// replays is the pk of the record that the key already created, or 0; err is why nothing is stored. Both are valid
	// once done is closed.
	replays int32
	err     error
}

// batch is the creates of one transaction.
type batch []*create

// certainInserts counts the creates that cannot be replays and will be inserted.
func (b batch) certainInserts() (count int) {
	for _, c := range b {
		if c.creation.IdempotencyKey == nil && !c.validateOnly {
			count++
		}
	}
	return count
}

// finish reports the outcome to every caller. A non-nil err is the outcome of all creates.
func (b batch) finish(err error) {
	for _, c := range b {
		if err != nil {
			c.err = err
		}
		close(c.done)
	}
}

func pksOf(creates batch) []int32 {
	pks := make([]int32, len(creates))
	for n, c := range creates {
		pks[n] = c.creation.PK
	}
	return pks
}

// isInserted reports whether the transaction has written the rows of the create.
func (c *create) isInserted() bool { return c.err == nil && c.replays == 0 && !c.validateOnly }
