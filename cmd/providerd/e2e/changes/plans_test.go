//go:build slow

package changes_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestPlansKilled applies random plans and kills the program in the middle of each, at a random time. All of the plan is
// then stored, or none. After a second run, the file is what is stored, and unchanged for a caller of the API.
func TestPlansKilled(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		const entries = 700
		m := newModel(28)
		apply := []string{"apply", "-f", "model.yaml", "--as", "initial", "--yes", "--prune=5000"}
		killed, completely := 0, 0
		plans := processtest.ProofSize(t, "faults", 2)
		for range plans {
			m.change(entries)
			m.write(t, s.Dir)
			before := s.stored(t)
			if kill(t, s.Command(t.Context(), apply...)) {
				killed++
			}
			if !slices.Equal(s.stored(t), before) {
				completely++
				m.compare(t, s)
			}
			s.RunCommand(t, apply...)
			m.compare(t, s)
			s.expectUnchanged(t, entries)
		}
		t.Logf("%d plans, %d killed, %d written before the second run", plans, killed, completely)
	})
}

func (s *site) anyServer() *providerdtest.Server { return s.Replicas[rand.IntN(len(s.Replicas))] }

// expectUnchanged expects that a caller of the API who applies the file changes nothing.
func (s *site) expectUnchanged(t *testing.T, entries int) {
	t.Helper()
	url := s.anyServer().URL
	checked := s.RunCommand(t, "apply", "-f", "model.yaml", "--server", url, "--token-file", "data/initial-token")
	processtest.Contains(t, checked, fmt.Sprintf(" 0 created, %d unchanged,", entries))
}

// kill runs a command and kills it at a random time after it has printed its plan, unless it ends before.
func kill(t *testing.T, command *exec.Cmd) (isKilled bool) {
	child := processtest.Try(processtest.Start(command)).Must(t)
	processtest.WaitUntil(t, "the command prints the plan", func() bool {
		return child.Stdout.String()+child.Stderr.String() != "" || child.HasEnded()
	})
	// This is a little longer than the transaction takes.
	<-time.After(rand.N(200 * time.Millisecond))
	_ = child.Kill()
	isKilled = !command.ProcessState.Exited()
	err := child.Wait()
	processtest.Require(t, err == nil || isKilled, "%v: %s", err, child.Stderr)
	return isKilled
}

// busy is the message of a command that waited too long for other changes, as on a busy machine.
const busy = "wait for other changes: storage is unavailable"

// TestPlansBesideOthers applies random plans while servers create and replay, another operator updates and deletes, CI
// applies the same file, and secrets are resealed. In the end the file is what is stored, and what others created is
// as it was acknowledged.
func TestPlansBesideOthers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		const plans, entries = 2, 300
		client, journal, m := contracttest.Client(t), providerdtest.NewJournal(), newModel(29)
		load := journal.Load(2, "created", func(name string) (providerdtest.Record, error) {
			return s.anyServer().CreateOnce(client, name)
		})
		replays := providerdtest.StartLoad(1, func(int, int) bool {
			first := journal.Any()
			if first.Name == "" {
				return true
			}
			again, err := s.anyServer().CreateOnce(client, first.Name)
			processtest.Expect(t, err == nil && again == first, "replay of %v returned %v, %v", first, again, err)
			return !t.Failed()
		})
		deletes := providerdtest.StartLoad(1, func(_, n int) bool {
			doomed, err := s.anyServer().CreateOnce(client, fmt.Sprint("doomed-", n))
			if err != nil {
				t.Errorf("create: %v", err)
				return false
			}
			s.try(t, busy, "provider", "delete", fmt.Sprint(doomed.PK), "--yes")
			return !t.Failed()
		})
		rotations := providerdtest.StartLoad(1, func(int, int) bool {
			s.try(t, busy, "key", "rotate")
			s.try(t, busy, "key", "reseal")
			return !t.Failed()
		})
		conflicts := 0
		for range plans {
			m.change(entries)
			m.write(t, s.Dir)
			var group sync.WaitGroup
			group.Go(func() { s.interfere(t, m.pks) })
			group.Go(func() {
				s.try(t, "not stored as specified in the files", "apply", "-f", "model.yaml", "--server", s.anyServer().URL,
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
		s.expectUnchanged(t, entries)
		s.Stop(t)
		journal.Compare(t, slices.DeleteFunc(s.Stored(t, s.URL), func(record providerdtest.Record) bool {
			return !strings.HasPrefix(record.Name, "created-")
		}))
	})
}

// apply applies the file until the plan is written, and returns how often it differed from what was shown.
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

func (s *site) interfere(t *testing.T, pks map[int]int64) {
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
	processtest.Expect(t, err == nil || regexp.MustCompile(reason).Match(output), "%v: %v: %s", arguments, err, output)
	return string(output)
}
