//go:build proof

package soak_test

import (
	"os"
	"testing"
	"time"

	"example.com/providerd/store/storetest/processtest"
)

// TestSoakFindsInjectedLeaks loads a program that leaks memory, goroutines and descriptors. No measure may be flat.
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
		processtest.Expect(t, !found.isFlat(), "%s: the leak was not found", m.name)
	}
}
