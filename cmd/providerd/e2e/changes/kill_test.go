//go:build slow

package changes_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store/storetest/processtest"
)

const (
	// defaultPlans is the number of plans; the proof "faults" sets more.
	defaultPlans = 2
	// modelEntries is the size of the file.
	modelEntries = 700
	// maxDelay is a little longer than the transaction takes.
	maxDelay = 200 * time.Millisecond
)

// TestPlansKilled applies random plans and kills the program in the middle of each, at a random time. All of the plan is
// then stored, or none. After a second run, the file is what is stored, and unchanged for a caller of the API.
func TestPlansKilled(t *testing.T) {
	t.Parallel()
	for name, start := range sites() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, m := start(t), newModel(28)
			apply := []string{"apply", "-f", "model.yaml", "--as", "initial", "--yes", "--prune=5000"}
			killed, completely := 0, 0
			plans := processtest.ProofSize(t, "faults", defaultPlans)
			for range plans {
				m.change(modelEntries)
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
				server := s.Replicas[rand.IntN(len(s.Replicas))]
				checked := s.RunCommand(t, "apply", "-f", "model.yaml", "--server", server.URL, "--token-file", "data/initial-token")
				if want := fmt.Sprintf(" 0 created, %d unchanged,", modelEntries); !strings.Contains(checked, want) {
					t.Errorf("over HTTP: %s", checked)
				}
			}
			t.Logf("%d plans, %d killed, %d written before the second run", plans, killed, completely)
		})
	}
}

// kill runs a command and kills it at a random time after it has printed its plan, unless it ends before.
func kill(t *testing.T, command *exec.Cmd) (isKilled bool) {
	t.Helper()
	child, err := processtest.Start(command)
	processtest.Must(t, err)
	processtest.WaitUntil(t, "the command prints the plan", func() bool {
		return child.Stdout.String()+child.Stderr.String() != "" || child.HasEnded()
	})
	<-time.After(rand.N(maxDelay))
	_ = child.Kill()
	isKilled = !command.ProcessState.Exited()
	if err := child.Wait(); err != nil && !isKilled {
		t.Fatalf("%v: %s", err, child.Stderr)
	}
	return isKilled
}
