package providerdtest

import (
	"sync"
	"sync/atomic"
)

// Load is a set of callers that repeat a step until they are stopped or the step returns false.
type Load struct {
	isStopped atomic.Bool
	group     sync.WaitGroup
}

// StartLoad starts callers. Each passes its number to step, and n counts its steps from 0.
func StartLoad(callers int, step func(caller, n int) bool) *Load {
	l := &Load{}
	for caller := range callers {
		l.group.Go(func() {
			for n := 0; !l.isStopped.Load() && step(caller, n); n++ {
			}
		})
	}
	return l
}

// Stop waits for the callers to finish their current steps.
func (l *Load) Stop() {
	l.isStopped.Store(true)
	l.group.Wait()
}
