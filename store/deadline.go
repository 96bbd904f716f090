package store

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// leastTime is enough for an insert over the network, including its commit.
const leastTime = 1500 * time.Millisecond

// isLate reports whether too little time is left to insert a create.
func (i inserter) isLate(c *create) bool {
	return !c.deadline.IsZero() && time.Until(c.deadline) < i.leastTime
}

// inTime refuses creates that are late, and returns the others, so that a deadline does not cut a statement short and
// the creates behind do not wait. The error of an earlier statement, which says more, stays.
func (i inserter) inTime(creates []*create) (others []*create) {
	if !slices.ContainsFunc(creates, i.isLate) {
		return creates
	}
	for _, c := range creates {
		switch {
		case !i.isLate(c):
			others = append(others, c)
		case c.err == nil:
			c.err = fmt.Errorf("%w: no time left for a transaction", ErrUnavailable)
		}
	}
	return others
}

// untilDeadline returns a context that ends at the earliest deadline.
func untilDeadline(creates []*create) (context.Context, context.CancelFunc) {
	var first time.Time
	for _, c := range creates {
		if !c.deadline.IsZero() && (first.IsZero() || c.deadline.Before(first)) {
			first = c.deadline
		}
	}
	if first.IsZero() {
		return context.Background(), func() {}
	}
	return context.WithDeadline(context.Background(), first)
}
