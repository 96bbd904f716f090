//go:build proof

package soak_test

import (
	"os"
	"testing"
	"time"
)

// TestSoakFindsInjectedLeaks loads a program that leaks memory, goroutines and descriptors. No measure may be judged
// flat.
func TestSoakFindsInjectedLeaks(t *testing.T) {
	t.Setenv(leakVariable, "1")
	s := startSoak(t, os.Args[0], time.Second)
	// So many are enough for a leak to exceed the slack of every measure.
	for creates, _ := s.Counts(); creates < 24_000; creates, _ = s.Counts() {
		<-time.After(time.Second)
	}
	s.end(t)
	for _, m := range soakMeasures() {
		found := m.judge(s.processes()[0])
		t.Logf("%s: %+v", m.name, found)
		if found.isFlat() {
			t.Errorf("%s: the leak was not found", m.name)
		}
	}
}
