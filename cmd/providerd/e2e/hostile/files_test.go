//go:build slow

package hostile_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

const (
	// untilReset is more creates, each in its own transaction, than the WAL takes before it is reset.
	untilReset = 600

	changed = "does not match what SQLite wrote"
	moved   = "was removed or replaced while in use"
)

// accident is what happens to a file of a server's database, and what the server says about it.
type accident struct {
	inflict func(file string) error
	words   string
	// isHidden is set if a checkpoint that is running may hide it.
	isHidden bool
}

// overwrite copies a file as cp does: in place.
func overwrite(to, from string) error {
	content, err := os.ReadFile(from)
	return errors.Join(err, os.WriteFile(to, content, 0o600))
}

func overwriteWithOlder(file string) error { return overwrite(file, file+".older") }

// TestDamagedFilesStopCreates damages a file of a server that has no other requests. Everything acknowledged must be
// stored when the file is restored, whatever the server did in between and when it was stopped.
func TestDamagedFilesStopCreates(t *testing.T) {
	t.Parallel()
	empty := func(file string) error { return os.Truncate(file, 0) }
	for name, damage := range map[string]struct {
		accident
		suffix string
	}{
		"an older copy over the database": {accident{overwriteWithOlder, changed, false}, ""},
		"the WAL truncated":               {accident{empty, changed, false}, "-wal"},
		"an older WAL over the WAL":       {accident{overwriteWithOlder, changed, false}, "-wal"},
		"the wal-index removed":           {accident{os.Remove, moved, false}, "-shm"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			damage.damage(t, damage.suffix)
		})
	}
}

func (a accident) damage(t *testing.T, suffix string) {
	t.Helper()
	dir, client := t.TempDir(), contracttest.Client(t)
	database := filepath.Join(dir, "data", "providerd.db")
	server := providerdtest.Serve(t, dir)
	for _, age := range []string{".older", ".now"} {
		for range untilReset {
			server.Create(t, client)
		}
		processtest.Must(t, overwrite(database+age, database), overwrite(database+"-wal"+age, database+"-wal"))
	}
	processtest.Must(t, a.inflict(database+suffix))
	words := "providerd.db" + suffix + " " + a.words
	unknown := expectRefusals(t, server, client, words)
	if err := server.Child.Stop(syscall.SIGTERM); err == nil || !strings.Contains(server.Stderr.String(), words) {
		t.Errorf("exit: %v: %s", err, server.Stderr)
	}
	if suffix != "-shm" {
		processtest.Must(t, overwrite(database+suffix, database+suffix+".now"))
	}
	stored := len(providerdtest.StoredPKs(t, dir))
	t.Logf("acknowledged %d, unknown %d, stored %d", 2*untilReset, unknown, stored)
	processtest.Expect(t, unknown <= 1 && stored >= 2*untilReset && stored <= 2*untilReset+unknown,
		"%d records are stored, want %d and at most %d more", stored, 2*untilReset, unknown)
	providerdtest.CheckIntegrity(t, database)
}

// expectRefusals checks that creates, readiness and writing commands fail with words. It returns the unknown outcomes.
func expectRefusals(t *testing.T, server *providerdtest.Server, client *http.Client, words string) (unknown int) {
	for range 20 {
		const path, body = providerdtest.OAuth2Path, providerdtest.OAuth2Body
		text := server.ExpectPost(t, client, http.StatusServiceUnavailable, path, body, "")
		if strings.Contains(text, "/problems/outcome-unknown") {
			unknown++
		}
	}
	server.ExpectReadiness(t, "unavailable")
	processtest.WaitUntil(t, "the log has "+words, func() bool { return strings.Contains(server.Stderr.String(), words) })
	for _, line := range []string{
		"token revoke 1", "token create --name x --allow providers_oauth2_create", "key rotate",
		"application create x --name x",
	} {
		command := providerdtest.Command(t.Context(), server.Dir, strings.Fields(line)...)
		providerdtest.ExpectExit(t, command, providerdtest.ExitFailed, words)
	}
	return unknown
}

// An accident with the file of a database under load is noticed before the next create is acknowledged, by the running
// server and by one that starts after a crash. With the right files back, everything acknowledged is stored. Truncation
// is tried between checkpoints: one that is running can write the file back to its size before it is checked.
func TestAccidentsWithFiles(t *testing.T) {
	t.Parallel()
	otherDir := t.TempDir()
	providerdtest.Serve(t, otherDir).Stop(t)
	other := filepath.Join(otherDir, "data", "providerd.db")
	for name, accident := range map[string]accident{
		"cp":            {func(database string) error { return overwrite(database, other) }, changed, false},
		"an older copy": {overwriteWithOlder, changed, false},
		"rsync in place": {func(database string) error {
			older, err := os.ReadFile(database + ".older")
			return errors.Join(err, processtest.OverwriteBeginning(database, older[:len(older)/2]))
		}, changed, false},
		"truncate": {func(database string) error { return os.Truncate(database, 40<<10) }, changed, true},
		"mv":       {func(database string) error { return os.Rename(database, database+".moved") }, moved, false},
		"rm":       {os.Remove, moved, false},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", restart ", restarts), func(t *testing.T) {
				t.Parallel()
				accident.strike(t, restarts)
			})
		}
	}
}

func (a accident) strike(t *testing.T, restarts bool) {
	const callers = 3
	dir, client, sent := t.TempDir(), contracttest.Client(t), providerdtest.NewJournal()
	database := filepath.Join(dir, "data", "providerd.db")
	wal := database + "-wal"
	server := providerdtest.Serve(t, dir)
	load := createUntilEnd(callers, server, client, sent)
	sent.WaitForMore(t, untilReset)
	// A copy in the middle of a checkpoint is as good an older one as any.
	processtest.Must(t, overwrite(database+".older", database))
	sent.WaitForMore(t, 2*callers*untilReset)
	processtest.WaitUntil(t, "no checkpoint hides the accident", func() bool {
		server.Signal(t, syscall.SIGSTOP)
		isHidden := a.isHidden && runsCheckpoint(t, database)
		if isHidden {
			server.Signal(t, syscall.SIGCONT)
		}
		return !isHidden
	})
	processtest.Must(t, overwrite(database+".now", database), overwrite(wal+".now", wal), a.inflict(database))
	if !restarts {
		server.Signal(t, syscall.SIGCONT)
		processtest.WaitUntil(t, "the accident is noticed", func() bool {
			// With the tokens and keys of another database, no create gets as far as the files.
			if response, err := client.Get(server.URL + "/readyz"); err == nil {
				_ = response.Body.Close()
			}
			return strings.Contains(server.Stderr.String(), "providerd.db "+a.words)
		})
	}
	server.Kill(t)
	load.Stop()
	if restarts {
		providerdtest.ExpectExit(t, providerdtest.ServeCommand(t.Context(), dir), providerdtest.ExitFailed, "")
	}
	_ = os.Remove(database + "-shm")
	processtest.Must(t, overwrite(database, database+".now"), overwrite(wal, wal+".now"))
	expectStored(t, dir, sent)
}

// runsCheckpoint reports whether a program holds SQLite's lock of checkpoints, which is a byte of the wal-index.
func runsCheckpoint(t *testing.T, database string) bool {
	index := processtest.Try(os.OpenFile(database+"-shm", os.O_RDWR, 0)).Must(t)
	const byteOfLock = 121
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: byteOfLock, Len: 1}
	processtest.Must(t, syscall.FcntlFlock(index.Fd(), syscall.F_GETLK, &lock), index.Close())
	return lock.Type != syscall.F_UNLCK
}

// An older copy of the wal-index that is written over it while creates commit is noticed before it costs an acknowledged
// create: the header that the next commit writes does not hide it.
func TestOlderWALIndex(t *testing.T) {
	t.Parallel()
	const callers, rounds = 8, 5
	for round := range rounds {
		dir, client, sent := t.TempDir(), contracttest.Client(t), providerdtest.NewJournal()
		index := filepath.Join(dir, "data", "providerd.db-shm")
		server := providerdtest.Serve(t, dir)
		load := createUntilEnd(callers, server, client, sent)
		sent.WaitForMore(t, 100*(round+1))
		older := processtest.Try(os.ReadFile(index)).Must(t)
		sent.WaitForMore(t, 100)
		if round == rounds-1 {
			// The copy is shorter than the file, whose second block it leaves as it is.
			processtest.WaitUntil(t, "the wal-index has two blocks", func() bool {
				info, err := os.Stat(index)
				return err == nil && info.Size() > int64(len(older))
			})
		}
		processtest.Must(t, processtest.OverwriteBeginning(index, older))
		processtest.WaitUntil(t, "the accident is noticed", func() bool {
			return strings.Contains(server.Stderr.String(), changed)
		})
		server.Kill(t)
		load.Stop()
		expectStored(t, dir, sent)
	}
}

func createUntilEnd(
	callers int, server *providerdtest.Server, client *http.Client, sent *providerdtest.Journal,
) *providerdtest.Load {
	return providerdtest.StartLoad(callers, func(caller, n int) bool {
		if record, err := server.CreateOnce(client, fmt.Sprintf("%d-%d", caller, n)); err == nil {
			sent.Acknowledge(record)
		}
		return !server.HasEnded()
	})
}

func expectStored(t *testing.T, dir string, sent *providerdtest.Journal) {
	t.Helper()
	t.Logf("acknowledged %d", len(sent.Creates))
	providerdtest.CheckIncludes(t, providerdtest.Stored(t, dir), sent.Creates)
	providerdtest.CheckIntegrity(t, filepath.Join(dir, "data", "providerd.db"))
}
