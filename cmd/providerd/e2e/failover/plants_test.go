//go:build slow

package failover_test

import (
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestFailoverFindsPlantedFaults runs rounds with a program that does not wait for the standby before it answers from
// what is stored, and with one that sends again what may be stored. The account must find losses and doubles.
func TestFailoverFindsPlantedFaults(t *testing.T) {
	for _, c := range []struct {
		plant providerdtest.Fault
		count func(one roundResult) int
	}{
		{providerdtest.Fault{
			Title: "losses without the wait for replication", File: "store/postgres/begin.go",
			Old: "pg_logical_emit_message(true, 'providerd', '')::text", New: "''",
		}, func(one roundResult) int { return one.missing }},
		{providerdtest.Fault{
			Title: "doubles where everything is retried", File: "store/postgres/database.go",
			Old: "d.noteUnknownCommit(tx)\n\t\treturn false, err", New: "d.noteUnknownCommit(tx)\n\t\treturn true, err",
		}, func(one roundResult) int { return one.double }},
	} {
		t.Run(c.plant.Title, func(t *testing.T) {
			program := c.plant.Build(t)
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
