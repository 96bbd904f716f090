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
)

// defaultRewrites is the number of manipulations; "make faults" sets more.
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
			rounds := providerdtest.EnvCount(t, "PROVIDERD_KILL_ROUNDS", defaultRewrites)
			kinds := map[string]int{}
			for range rounds {
				m := l.randomManipulation(random, h)
				kinds[m.kind]++
				environment, exec := l.copy(t)
				exec(t, m.statements...)
				l.expectFound(t, m, environment)
			}
			t.Logf("%d manipulations found: %v", rounds, kinds)
		})
	}
}

// expectFound expects that the manipulation of a copy is found.
func (l *ledger) expectFound(t *testing.T, m manipulation, environment []string) {
	t.Helper()
	const differs = 3
	lines := l.command(t, "audit", "verify", "--against", filepath.Join(l.dir, "lines.jsonl"))
	lines.Env = append(lines.Env, environment...)
	output, _ := lines.CombinedOutput()
	if lines.ProcessState.ExitCode() != differs || !regexp.MustCompile(fmt.Sprintf(`(?m)^%d  `, m.pk)).Match(output) {
		t.Errorf("%s of provider %d was not found: status %d, %s\n%s", m.kind, m.pk, lines.ProcessState.ExitCode(), output,
			strings.Join(m.statements, "\n"))
	}
	heads := l.command(t, "audit", "verify", "--against", filepath.Join(l.dir, "heads.txt"))
	heads.Env = append(heads.Env, environment...)
	output, _ = heads.CombinedOutput()
	if heads.ProcessState.ExitCode() != differs {
		t.Errorf("%s of provider %d: status %d for heads, %s", m.kind, m.pk, heads.ProcessState.ExitCode(), output)
	}
}
