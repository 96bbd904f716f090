//go:build slow

package changes_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
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
				return s.servers[rand.IntN(len(s.servers))].CreateOnce(client, name)
			})
			follow := []string{"audit", "list", "--output", "jsonl", "--cursor-file", "cursor"}
			kills := processtest.ProofSize(t, "faults", defaultFollowed)
			for round := range kills {
				s.followUntilKilled(t, append(follow, "--follow"))
				if round%4 == 0 {
					s.run(t, "token", "revoke", s.newToken(t))
				}
			}
			load.Stop()
			s.appendLines(t, follow)
			text, err := os.ReadFile(filepath.Join(s.dir, "followed.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			lines := linesOf(t, string(text))
			seen := map[string]map[int64]bool{}
			for _, line := range lines {
				if seen[line.Event] == nil {
					seen[line.Event] = map[int64]bool{}
				}
				seen[line.Event][line.Subject] = true
			}
			created, _ := journal.Counts()
			missing := 0
			for _, record := range journal.Acknowledged() {
				if !seen["provider created"][record.PK] {
					missing++
				}
			}
			revoked := (kills + 3) / 4
			if missing > 0 || len(seen["token revoked"]) != revoked {
				t.Errorf("%d of %d creates and %d of %d revocations are missing", missing, created,
					revoked-len(seen["token revoked"]), revoked)
			}
			s.run(t, "audit", "verify", "followed.jsonl")
			t.Logf("%d kills, %d creates, %d lines, none missing", kills, created, len(lines))
		})
	}
}

// newToken creates a token and returns its id.
func (s *site) newToken(t *testing.T) string {
	t.Helper()
	var token struct {
		ID int64 `json:"id"`
	}
	output, err := s.command(t, "token", "create", "--name", "revoked", "--allow", "all", "--output", "json").Output()
	if err := errors.Join(err, json.Unmarshal(output, &token)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(token.ID)
}

// appendLines runs a command, which must succeed, and appends its lines to a file.
func (s *site) appendLines(t *testing.T, arguments []string) {
	t.Helper()
	output, err := s.command(t, arguments...).Output()
	if err != nil {
		t.Fatal(err)
	}
	file := s.openLines(t)
	if _, err := file.Write(output); errors.Join(err, file.Close()) != nil {
		t.Fatal(err)
	}
}

func (s *site) openLines(t *testing.T) *os.File {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(s.dir, "followed.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// followUntilKilled appends lines to a file until the program is killed at a random time, soon after it has printed.
func (s *site) followUntilKilled(t *testing.T, arguments []string) {
	t.Helper()
	file := s.openLines(t)
	defer func() { _ = file.Close() }()
	size := func() int64 {
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	var messages processtest.Buffer
	command := s.command(t, arguments...)
	command.Stdout, command.Stderr = file, &messages
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	processtest.WaitUntil(t, "lines are printed", func() bool { return size() > before })
	timer := time.AfterFunc(rand.N(50*time.Millisecond), func() { _ = command.Process.Signal(syscall.SIGKILL) })
	defer timer.Stop()
	if err := command.Wait(); command.ProcessState.Exited() {
		t.Fatalf("%v: %s", err, &messages)
	}
}
