package store

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// errLate is the outcome of a create that waited too long for its batch.
var errLate = fmt.Errorf("%w: no time left for a transaction", ErrUnavailable)

// isLate reports whether the create has less than the least time left.
func (c *create) isLate(least time.Duration) bool {
	return least > 0 && !c.deadline.IsZero() && time.Until(c.deadline) < least
}

func (b batch) hasLate(least time.Duration) bool {
	return slices.ContainsFunc(b, func(c *create) bool { return c.isLate(least) })
}

// split separates late creates from those that can join another batch.
func (b batch) split(least time.Duration) (late, again batch) {
	for _, c := range b {
		if c.deadline.IsZero() || c.isLate(least) {
			late = append(late, c)
			continue
		}
		c.claimed.Store(false)
		again = append(again, c)
	}
	return late, again
}

// deadline returns the earliest deadline; the zero time if there is none.
func (b batch) deadline() (first time.Time) {
	for _, c := range b {
		if !c.deadline.IsZero() && (first.IsZero() || c.deadline.Before(first)) {
			first = c.deadline
		}
	}
	return first
}

// untilDeadline returns a context with the earliest deadline, unless least is 0.
func (b batch) untilDeadline(ctx context.Context, least time.Duration) (context.Context, context.CancelFunc) {
	first := b.deadline()
	if least == 0 || first.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, first)
}
