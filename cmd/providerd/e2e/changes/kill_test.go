//go:build slow

package changes_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

const (
	// defaultPlans is the number of plans; "make faults" sets more.
	defaultPlans = 2
	// modelEntries is the size of the file: its changes need several transactions.
	modelEntries = 700
	// maxDelay is about as long as a transaction takes.
	maxDelay = 40 * time.Millisecond
)

// TestPlansKilled applies random plans and kills the program in the middle of each, at a random time. A second run does
// the rest, and then the file is what is stored, and unchanged for a caller of the API.
func TestPlansKilled(t *testing.T) {
	t.Parallel()
	for name, start := range sites() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, m := start(t), newModel(28)
			apply := []string{"apply", "-f", "model.yaml", "--as", s.caller, "--yes", "--prune=10000"}
			killed, partly := 0, 0
			plans := providerdtest.EnvCount(t, "PROVIDERD_KILL_ROUNDS", defaultPlans)
			for range plans {
				m.change(modelEntries)
				m.write(t, s.dir)
				isKilled, output := kill(t, s.command(t, apply...))
				if isKilled {
					killed++
				}
				if isKilled && strings.Contains(output, "transaction 1 of") {
					partly++
				}
				s.run(t, apply...)
				m.compare(t, s)
				server := s.servers[rand.IntN(len(s.servers))]
				checked := s.run(t, "apply", "-f", "model.yaml", "--server", server.URL, "--token-file", "data/initial-token")
				if want := fmt.Sprintf(" 0 created, %d unchanged,", modelEntries); !strings.Contains(checked, want) {
					t.Errorf("over HTTP: %s", checked)
				}
			}
			t.Logf("%d plans, %d killed, %d of them after some of their transactions", plans, killed, partly)
		})
	}
}

// kill runs a command and kills it at a random time before or after one of its transactions, unless it ends before. It
// returns its output.
func kill(t *testing.T, command *exec.Cmd) (isKilled bool, text string) {
	t.Helper()
	var output processtest.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	after := []string{" records of ", "transaction 1 of", "transaction 2 of"}[rand.IntN(3)]
	processtest.WaitUntil(t, "the command is at "+after, func() bool {
		return strings.Contains(output.String(), after) || len(ended) > 0
	})
	timer := time.AfterFunc(rand.N(maxDelay), func() { _ = command.Process.Kill() })
	defer timer.Stop()
	err := <-ended
	status, ok := command.ProcessState.Sys().(syscall.WaitStatus)
	if isKilled = ok && status.Signaled(); err != nil && !isKilled {
		t.Fatalf("%v: %s", err, &output)
	}
	return isKilled, output.String()
}
