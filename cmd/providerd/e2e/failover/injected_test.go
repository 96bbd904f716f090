//go:build proof

package failover_test

import (
	"strings"
	"testing"
)

// TestFailoverFindsInjectedFaults runs rounds with commits that do not wait for the standby, and rounds with clients
// that repeat creates as new ones when they did not get the response. The comparison must find losses and doubles.
func TestFailoverFindsInjectedFaults(t *testing.T) {
	for _, c := range []struct {
		title, kinds string
		open         func(t *testing.T) (*pair, string)
		repeats      bool
		count        func(r roundResult) int
	}{
		{"losses", "standby promoted", newAsynchronousPair, false, func(r roundResult) int { return r.missing }},
		{"doubles", "standby back", newPair, true, func(r roundResult) int { return r.double }},
	} {
		t.Run(c.title, func(t *testing.T) {
			servers, url := c.open(t)
			f := newFailover(t, servers, url)
			f.repeats = c.repeats
			found := 0
			for _, kind := range plainKinds() {
				if strings.Contains(kind.title, c.kinds) {
					result := f.run(t, kind.title, func() { kind.strike(t, f, servers) })
					t.Logf("%+v", result)
					found += c.count(result)
				}
			}
			if found == 0 {
				t.Error("the comparison found nothing")
			}
		})
	}
}
