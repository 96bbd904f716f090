//go:build slow

package failover_test

import (
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestFailoverFindsInjectedFaults runs rounds with a program that does not wait for the standby before it responds from
// stored records, and with one that retries commits of unknown outcome. The comparison must find losses and doubles.
func TestFailoverFindsInjectedFaults(t *testing.T) {
	for _, c := range []struct {
		fault providerdtest.Fault
		count func(r roundResult) int
	}{
		{providerdtest.Fault{
			Title: "losses without waiting for replication", File: "store/postgres/begin.go",
			Old: "pg_logical_emit_message(true, 'providerd', '')::text", New: "''",
		}, func(r roundResult) int { return r.missing }},
		{providerdtest.Fault{
			Title: "doubles if unknown outcomes are retried", File: "store/postgres/database.go",
			Old: "d.noteUnknownCommit(tx)\n\t\treturn false, err", New: "d.noteUnknownCommit(tx)\n\t\treturn true, err",
		}, func(r roundResult) int { return r.double }},
	} {
		t.Run(c.fault.Title, func(t *testing.T) {
			program := c.fault.Build(t)
			// Retries are stored twice only if the standby is back in time.
			kinds := append(only(plainKinds(), "commits", "beside"), only(plainKinds(), "standby back")...)
			results := append(runRounds(t, program, kinds, newPair),
				runRounds(t, program, only(patroniKinds(), "alone"), newManaged)...)
			found := 0
			for _, r := range results {
				found += c.count(r)
			}
			t.Logf("%d found in %d rounds", found, len(results))
			if found == 0 {
				t.Error("the comparison found nothing")
			}
		})
	}
}

// only returns the kinds that have one of the words in their title.
func only[Site site](kinds []failoverKind[Site], words ...string) []failoverKind[Site] {
	return slices.DeleteFunc(kinds, func(kind failoverKind[Site]) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(kind.title, word) })
	})
}
