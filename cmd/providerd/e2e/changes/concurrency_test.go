//go:build slow

package changes_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
)

// busy is the message of a command that waited too long for other changes, as on a busy machine.
const busy = "wait for other changes: storage is unavailable"

// TestPlansBesideOthers applies random plans while servers create and replay, another operator updates and deletes, CI
// applies the same file, and secrets are resealed. In the end the file is what is stored, and what others created is
// as it was acknowledged.
func TestPlansBesideOthers(t *testing.T) {
	t.Parallel()
	const plans, entries = 2, 300
	for name, start := range sites() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, m := start(t), newModel(29)
			client, journal := contracttest.Client(t), providerdtest.NewJournal()
			anyServer := func() *providerdtest.Server { return s.Replicas[rand.IntN(len(s.Replicas))] }
			load := journal.Load(2, "created", func(name string) (providerdtest.Record, error) {
				return anyServer().CreateOnce(client, name)
			})
			replays := providerdtest.StartLoad(1, func(int, int) bool {
				first := journal.Any()
				if first.Name == "" {
					return true
				}
				if again, err := anyServer().CreateOnce(client, first.Name); err != nil || again != first {
					t.Errorf("replay of %v returned %v, %v", first, again, err)
				}
				return !t.Failed()
			})
			deletes := providerdtest.StartLoad(1, func(_, n int) bool {
				doomed, err := anyServer().CreateOnce(client, fmt.Sprint("doomed-", n))
				if err != nil {
					t.Errorf("create: %v", err)
					return false
				}
				s.try(t, busy, "provider", "delete", fmt.Sprint(doomed.PK), "--yes")
				return !t.Failed()
			})
			rotations := providerdtest.StartLoad(1, func(int, int) bool {
				s.try(t, busy, "key", "rotate", "--reseal")
				return !t.Failed()
			})
			conflicts := 0
			for range plans {
				m.change(entries)
				m.write(t, s.Dir)
				var group sync.WaitGroup
				group.Go(func() { s.interfere(t, m.pks) })
				group.Go(func() {
					s.try(t, "not stored as specified in the files", "apply", "-f", "model.yaml", "--server", anyServer().URL,
						"--token-file", "data/initial-token")
				})
				conflicts += s.apply(t)
				group.Wait()
				s.apply(t)
				m.compare(t, s)
			}
			for _, others := range []*providerdtest.Load{load, replays, deletes, rotations} {
				others.Stop()
			}
			t.Logf("%d plans, %d refused because of a conflict, beside %d creates", plans, conflicts, len(journal.Creates))
			checked := s.RunCommand(t, "apply", "-f", "model.yaml", "--server", anyServer().URL, "--token-file", "data/initial-token")
			if want := fmt.Sprintf(" 0 created, %d unchanged,", entries); !strings.Contains(checked, want) {
				t.Errorf("over HTTP: %s", checked)
			}
			journal.Compare(t, s.created(t))
		})
	}
}

// apply applies the file until the plan is written, and returns how often it was another one than shown. Entries that CI
// created meanwhile are refused.
func (s *site) apply(t *testing.T) (conflicts int) {
	t.Helper()
	const conflict = "the plan changed; nothing was written; run the command again"
	reasons := "not stored as specified in the files|" + conflict + "|" + busy
	for ; !t.Failed(); conflicts++ {
		output := s.try(t, reasons, "apply", "-f", "model.yaml", "--as", "initial", "--yes", "--prune=5000")
		if !strings.Contains(output, conflict) && !strings.Contains(output, busy) {
			break
		}
	}
	return conflicts
}

// interfere updates some records at random times.
func (s *site) interfere(t *testing.T, pks map[int]int64) {
	t.Helper()
	const updates = 5
	for _, pk := range slices.Collect(maps.Values(pks))[:min(updates, len(pks))] {
		s.try(t, "provider was changed or deleted in the meantime|no such record|"+busy,
			"provider", "update", fmt.Sprint(pk), "redirect_uris=https://other.example.com/"+time.Now().Format("150405.000"), "--yes")
	}
}

// try runs a command that may fail only for a reason that matches a pattern, and returns its output and messages.
func (s *site) try(t *testing.T, reason string, arguments ...string) string {
	t.Helper()
	output, err := s.Command(t.Context(), arguments...).CombinedOutput()
	if err != nil && !regexp.MustCompile(reason).Match(output) {
		t.Errorf("%v: %v: %s", arguments, err, output)
	}
	return string(output)
}

// created returns the stored providers that the load created.
func (s *site) created(t *testing.T) (created []providerdtest.Record) {
	t.Helper()
	for _, r := range s.stored(t) {
		if strings.HasPrefix(r.Name, "created-") {
			created = append(created, providerdtest.Record{Name: r.Name, PK: r.PK, Secret: r.ClientSecret})
		}
	}
	return created
}
