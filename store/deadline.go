package store

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// errLate is what becomes of a create that waited too long for its batch.
var errLate = fmt.Errorf("%w: no time was left for a transaction", ErrUnavailable)

// isLate reports whether less than the least time is left for the create.
func (c *create) isLate(least time.Duration) bool {
	return least > 0 && !c.deadline.IsZero() && time.Until(c.deadline) < least
}

func (b batch) hasLate(least time.Duration) bool {
	return slices.ContainsFunc(b, func(one *create) bool { return one.isLate(least) })
}

// split parts the creates that are late from those that may be claimed again.
func (b batch) split(least time.Duration) (late, again batch) {
	for _, one := range b {
		if one.deadline.IsZero() || one.isLate(least) {
			late = append(late, one)
			continue
		}
		one.claimed.Store(false)
		again = append(again, one)
	}
	return late, again
}

// deadline returns the first deadline of the creates; the zero time if none has one.
func (b batch) deadline() (first time.Time) {
	for _, one := range b {
		if !one.deadline.IsZero() && (first.IsZero() || one.deadline.Before(first)) {
			first = one.deadline
		}
	}
	return first
}

// untilDeadline returns a context that ends with the first deadline of the creates. The least time is 0 where the
// database heeds no deadline.
func (b batch) untilDeadline(ctx context.Context, least time.Duration) (context.Context, context.CancelFunc) {
	first := b.deadline()
	if least == 0 || first.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, first)
}
