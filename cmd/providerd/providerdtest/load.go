package providerdtest

import (
	"sync"
	"sync/atomic"
)

// Load is callers that take one step after the other, until it is ended or a step returns false.
type Load struct {
	isOver atomic.Bool
	group  sync.WaitGroup
}

// StartLoad starts so many callers. Each has its number, and counts its steps from 0.
func StartLoad(callers int, step func(caller, n int) bool) *Load {
	l := &Load{}
	for caller := range callers {
		l.group.Go(func() {
			for n := 0; !l.isOver.Load() && step(caller, n); n++ {
			}
		})
	}
	return l
}

// Stop lets the callers finish the steps that they have begun.
func (l *Load) Stop() {
	l.isOver.Store(true)
	l.group.Wait()
}
