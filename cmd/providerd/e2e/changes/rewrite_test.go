//go:build slow

package changes_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// defaultRewrites is the number of manipulations; the proof "faults" sets more.
const defaultRewrites = 8

// TestRewrittenRecordsAreFound changes a copy of a database by SQL, without the program, and expects that the record is
// named. Changes by the program are no findings.
func TestRewrittenRecordsAreFound(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) *ledger{"sqlite": ledgerInSQLite, "postgres": ledgerInPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t)
			h := l.history(t)
			random := rand.New(rand.NewPCG(31, 31))
			rounds := processtest.ProofSize(t, "faults", defaultRewrites)
			kinds := map[string]int{}
			for range rounds {
				m := l.randomManipulation(random, h)
				kinds[m.kind]++
				copied := l.copy(t)
				if err := providerdtest.Execute(t.Context(), copied, m.statements...); err != nil {
					kinds["refused by the schema"]++
					continue
				}
				l.expectFound(t, m, copied)
			}
			t.Logf("%d manipulations found or refused: %v", rounds, kinds)
			if refused := kinds["refused by the schema"]; rounds > 20 && refused > rounds/3 {
				t.Errorf("%d of %d manipulations were refused", refused, rounds)
			}
		})
	}
}

// expectFound expects that verify finds the manipulation of a copy, or that its event is printed.
func (l *ledger) expectFound(t *testing.T, m manipulation, database string) {
	t.Helper()
	const differs = 3
	command, status, pattern := []string{"audit", "verify", filepath.Join(l.Dir, "lines.jsonl")}, differs, `(?m)^%d  `
	if m.hasEvent {
		command, status, pattern = []string{"audit", "list", "--after", fmt.Sprint(l.lastEvent)}, 0, ` provider created +%d `
	}
	environment := []string{"PROVIDERD_DATABASE=" + database, "PROVIDERD_KEYSET=" + l.Keyset()}
	audit := l.Command(t.Context(), append(environment, command...)...)
	output, _ := audit.CombinedOutput()
	if audit.ProcessState.ExitCode() != status || !regexp.MustCompile(fmt.Sprintf(pattern, m.pk)).Match(output) {
		t.Errorf("%s of provider %d was not found: %v, %s\n%s", m.kind, m.pk, audit.ProcessState, output,
			strings.Join(m.statements, "\n"))
	}
}
