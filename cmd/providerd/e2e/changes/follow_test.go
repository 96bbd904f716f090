//go:build slow

package changes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

const otherEvent = "the log of events ends before the event of the cursor; another event now has its id, "

// TestFollowRestored restores an older copy of the server under followers that have printed all events, and adds other
// events until their ids have passed those of the copy. A follower prints none of them, and a cursor is refused.
func TestFollowRestored(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	s := &site{providerdtest.StartFleet(t, cluster.CreateDatabase(t), 1)}
	s.Stop(t)
	cluster.Stop(t)
	data, older := cluster.Path("data"), cluster.Path("older")
	providerdtest.Run(t, "cp", "--archive", data, older)
	cluster.Start(t)
	s.createTokens(t, 3)
	followers := s.startFollowers(t)
	cluster.Stop(t)
	processtest.Must(t, os.RemoveAll(data), os.Rename(older, data))
	cluster.Start(t)
	s.createTokens(t, 6)
	s.expectFollowersEnd(t, followers, otherEvent)
}

// TestFollowRemovedEvents deletes the last events, which were printed, and adds others; SQLite reuses their ids.
func TestFollowRemovedEvents(t *testing.T) {
	t.Parallel()
	for added, want := range map[int]struct{ message, finding string }{
		0: {"the log of events ends with event [0-9]+, so event [0-9]+ does not exist", "removed"},
		2: {"the log of events ends with event [0-9]+, so event [0-9]+ does not exist", "changed"},
		3: {otherEvent, "changed"},
		6: {otherEvent, "changed"},
	} {
		t.Run(fmt.Sprint(added), func(t *testing.T) {
			t.Parallel()
			s := &site{providerdtest.StartFleet(t, "", 1)}
			s.createTokens(t, 3)
			followers := s.startFollowers(t)
			const remove = "DELETE FROM events WHERE id > (SELECT max(id) - 3 FROM events)"
			database := filepath.Join(s.Dir, "data", "providerd.db")
			processtest.Must(t, providerdtest.Execute(t.Context(), "sqlite:"+database, remove))
			s.createTokens(t, added)
			s.expectFollowersEnd(t, followers, want.message)
			providerdtest.ExpectExit(t, s.Command(t.Context(), "audit", "verify", "lines.jsonl", "--output", "json"),
				providerdtest.ExitDiffers, `"finding":"its event \\"token created\\" was `+want.finding)
		})
	}
}

func (s *site) createTokens(t *testing.T, count int) {
	t.Helper()
	for range count {
		s.RunCommand(t, "token", "create", "--name", "ci", "--allow", "all")
	}
}

// startFollowers returns stopped followers, with a cursor or without, that have printed all events. It keeps the lines.
func (s *site) startFollowers(t *testing.T) (followers []*processtest.Child) {
	t.Helper()
	lines := s.RunCommand(t, strings.Fields("audit list --output jsonl --cursor-file cursor")...)
	processtest.Must(t, os.WriteFile(filepath.Join(s.Dir, "lines.jsonl"), []byte(lines), 0o600))
	for _, flags := range []string{"", "--cursor-file other", "--since 1h"} {
		follower, err := processtest.Start(s.Command(t.Context(), strings.Fields("audit list --output jsonl --follow "+flags)...))
		processtest.Must(t, err)
		processtest.WaitUntil(t, "all events are printed", func() bool {
			return strings.Count(follower.Stdout.String(), "\n") == strings.Count(lines, "\n")
		})
		// It must not see the log while that is shorter.
		processtest.Must(t, follower.Command.Process.Signal(syscall.SIGSTOP))
		followers = append(followers, follower)
	}
	return followers
}

// expectFollowersEnd expects that followers continue, fail and print nothing more, and that the cursors are refused.
func (s *site) expectFollowersEnd(t *testing.T, followers []*processtest.Child, message string) {
	t.Helper()
	for _, follower := range followers {
		printed := follower.Stdout.String()
		processtest.Must(t, follower.Command.Process.Signal(syscall.SIGCONT))
		err := follower.Wait()
		processtest.Expect(t, follower.Command.ProcessState.ExitCode() == providerdtest.ExitFailed &&
			regexp.MustCompile(message).MatchString(follower.Stderr.String()) && follower.Stdout.String() == printed,
			"%v: %v: %s\nprinted %s", follower.Command.Args, err, follower.Stderr,
			strings.TrimPrefix(follower.Stdout.String(), printed))
	}
	for _, file := range []string{"cursor", "other"} {
		providerdtest.ExpectExit(t, s.Command(t.Context(), "audit", "list", "--output", "jsonl", "--cursor-file", file),
			providerdtest.ExitFailed, message)
	}
}
