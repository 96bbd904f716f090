package store

import "time"

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
