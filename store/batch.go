package store

import (
	"sync/atomic"
	"time"
)

// Timing says when a create was where. Each time is zero where the create never came there.
type Timing struct {
	// Queued is when it began to wait for its transaction. A create that is alone does not wait for long.
	Queued time.Time
	// Begun is when its transaction began, and Ended when that was on disk, or nothing of it was.
	Begun, Ended time.Time
	// BatchSize is how many creates shared the transaction.
	BatchSize int
	// HasFailed tells that the transaction failed, and so all creates in it.
	HasFailed bool
}

// queued notes that a create waits, for whoever asked for its timing.
func (c *create) queued() {
	if c.timing != nil {
		c.timing.Queued = time.Now()
	}
}

// note notes the transaction of a batch, which has just ended, for those who asked for the timing of a create.
func (b batch) note(begun time.Time, err error) {
	var ended time.Time
	for _, one := range b {
		if one.timing == nil {
			continue
		}
		if ended.IsZero() {
			ended = time.Now()
		}
		one.timing.Begun, one.timing.Ended = begun, ended
		one.timing.BatchSize, one.timing.HasFailed = len(b), err != nil
	}
}

// create is one create on its way to the disk.
type create struct {
	creation Creation
	// digest is that of the body; nil without a key.
	digest   []byte
	settings settings
	// validateOnly tells that nothing is to be stored.
	validateOnly bool
	// timing is filled in; nil where nobody asked for it.
	timing *Timing
	// deadline is when its caller gives up; the zero time for never.
	deadline time.Time
	// claimed is set by whoever is first: the batcher that begins with it, or the caller that gives up.
	claimed atomic.Bool
	done    chan struct{}
	// replays is the pk of the record that the key made before, or 0; err is why nothing is stored. Both are valid once
	// done is closed.
	replays int32
	err     error
}

// batch is some creates that share one transaction.
type batch []*create

// withoutKeys counts the creates that are to be stored, and are no replays for sure.
func (b batch) withoutKeys() (count int) {
	for _, one := range b {
		if one.creation.IdempotencyKey == nil && !one.validateOnly {
			count++
		}
	}
	return count
}

// finish tells every caller the outcome.
func (b batch) finish(err error) {
	for _, one := range b {
		if err != nil {
			one.err = err
		}
		close(one.done)
	}
}

func pksOf(creates batch) []int32 {
	pks := make([]int32, len(creates))
	for n, one := range creates {
		pks[n] = one.creation.PK
	}
	return pks
}

// isInserted tells whether the rows of the create were written, as far as its transaction goes.
func (c *create) isInserted() bool { return c.err == nil && c.replays == 0 && !c.validateOnly }
