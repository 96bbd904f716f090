//go:build failover

package command

import (
	"slices"
	"strings"
	"testing"
)

// TestFailoverFindsPlantedFaults runs rounds with a program that does not wait for the standby before it answers from
// what is stored, and with one that sends again what may be stored. The account must find losses and doubles.
func TestFailoverFindsPlantedFaults(t *testing.T) {
	for _, c := range []struct {
		plant plant
		count func(one roundResult) int
	}{
		{plant{
			"losses without the wait for replication", "store/postgres/begin.go",
			"pg_logical_emit_message(true, 'providerd', '')::text", "''",
		}, func(one roundResult) int { return one.missing }},
		{plant{
			"doubles where everything is retried", "store/postgres/database.go",
			"d.doubt(tx)\n\t\treturn false, err", "d.doubt(tx)\n\t\treturn true, err",
		}, func(one roundResult) int { return one.double }},
	} {
		t.Run(c.plant.title, func(t *testing.T) {
			program := c.plant.build(t)
			// What is sent again is stored twice only where the standby is back in time.
			kinds := append(only(plainKinds(), "commits", "beside"), only(plainKinds(), "standby back")...)
			results := append(runRounds(t, program, kinds, newPair),
				runRounds(t, program, only(patroniKinds(), "alone"), newManaged)...)
			found := 0
			for _, one := range results {
				found += c.count(one)
			}
			t.Logf("%d found in %d rounds", found, len(results))
			if found == 0 {
				t.Error("the account lets it pass")
			}
		})
	}
}

// only are the kinds with one of the words in their title.
func only[Site site](kinds []failoverKind[Site], words ...string) []failoverKind[Site] {
	return slices.DeleteFunc(kinds, func(kind failoverKind[Site]) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(kind.title, word) })
	})
}
