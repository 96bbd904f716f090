//go:build slow

package changes_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// defaultFollowed is how often the program that follows the log is killed; the proof "faults" sets more.
const defaultFollowed = 3

// TestFollowKilled follows the log of servers under load and kills the program again and again. Each run continues after
// the lines of the last one, and no event is missing.
func TestFollowKilled(t *testing.T) {
	t.Parallel()
	for name, start := range sites() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			client, journal := contracttest.Client(t), providerdtest.NewJournal()
			load := journal.Load(8, "followed", func(name string) (providerdtest.Record, error) {
				return s.Replicas[rand.IntN(len(s.Replicas))].CreateOnce(client, name)
			})
			kills := processtest.ProofSize(t, "faults", defaultFollowed)
			for round := range kills {
				s.followUntilKilled(t)
				if round%4 == 0 {
					s.RunCommand(t, "token", "create", "--name", "revoked", "--allow", "all")
					s.RunCommand(t, "token", "revoke", "--name", "revoked")
				}
			}
			load.Stop()
			// It also compares the lines with the database.
			providerdtest.StartFollower(t, s.Dir, s.Command).Verify(t)
			text, err := os.ReadFile(filepath.Join(s.Dir, "followed.jsonl"))
			processtest.Must(t, err)
			created, revoked := map[int64]bool{}, map[int64]bool{}
			for _, line := range linesOf(t, string(text)) {
				switch line.Event {
				case "provider created":
					created[line.Subject] = true
				case "token revoked":
					revoked[line.Subject] = true
				}
			}
			missing := 0
			for _, record := range journal.Creates {
				if !created[record.PK] {
					missing++
				}
			}
			if revocations := (kills + 3) / 4; missing > 0 || len(revoked) != revocations {
				t.Errorf("%d of %d creates are missing, and %d of %d revocations were followed", missing, len(journal.Creates),
					len(revoked), revocations)
			}
			t.Logf("%d kills, %d creates, %d missing", kills, len(journal.Creates), missing)
		})
	}
}

// followUntilKilled appends lines to a file until the program is killed at a random time, soon after it has printed.
func (s *site) followUntilKilled(t *testing.T) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(s.Dir, "followed.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	processtest.Must(t, err)
	defer func() { _ = file.Close() }()
	size := func() int64 {
		info, err := file.Stat()
		processtest.Must(t, err)
		return info.Size()
	}
	before := size()
	command := s.Command(t.Context(), "audit", "list", "--output", "jsonl", "--cursor-file", "followed.jsonl.cursor", "--follow")
	command.Stdout = file
	child, err := processtest.Start(command)
	processtest.Must(t, err)
	processtest.WaitUntil(t, "lines are printed", func() bool { return size() > before })
	<-time.After(rand.N(50 * time.Millisecond))
	if err := child.Kill(); err != nil {
		t.Fatalf("%v: %s", err, child.Stderr)
	}
}
