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

// accident is what an operator does to the database of a server under load.
type accident struct {
	inflict func(database string) error
	words   string
}

func accidents(other string) map[string]accident {
	const changed, moved = "providerd.db does not match what SQLite wrote", "providerd.db was removed or replaced while in use"
	return map[string]accident{
		"cp":            {func(database string) error { return overwrite(database, other) }, changed},
		"an older copy": {func(database string) error { return overwrite(database, database+".older") }, changed},
		"rsync in place": {func(database string) error {
			older, err := os.ReadFile(database + ".older")
			return errors.Join(err, processtest.OverwriteBeginning(database, older[:len(older)/2]))
		}, changed},
		"truncate": {func(database string) error { return os.Truncate(database, 40<<10) }, changed},
		"mv":       {func(database string) error { return os.Rename(database, database+".moved") }, moved},
		"rm":       {os.Remove, moved},
	}
}

// An accident with the file of a database under load is noticed before the next create is acknowledged, by the running
// server and by one that starts after a crash. With the right files back, everything acknowledged is stored.
func TestAccidentsWithFiles(t *testing.T) {
	t.Parallel()
	otherDir := t.TempDir()
	providerdtest.Serve(t, otherDir).Stop(t)
	for name, accident := range accidents(filepath.Join(otherDir, "data", "providerd.db")) {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", restart ", restarts), func(t *testing.T) {
				t.Parallel()
				accident.strike(t, restarts)
			})
		}
	}
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
		older, err := os.ReadFile(index)
		processtest.Must(t, err)
		sent.WaitForMore(t, 100)
		if round == rounds-1 {
			// The copy is shorter than the file, whose second block it leaves as it is.
			processtest.WaitUntil(t, "the wal-index has two blocks", func() bool { return sizeOf(index) > int64(len(older)) })
		}
		processtest.Must(t, processtest.OverwriteBeginning(index, older))
		processtest.WaitUntil(t, "the accident is noticed", func() bool {
			return strings.Contains(server.Stderr.String(), "does not match what SQLite wrote")
		})
		server.Kill(t)
		load.Stop()
		expectStored(t, dir, sent)
	}
}

// createUntilEnd starts callers that create until the server ends.
func createUntilEnd(
	callers int, server *providerdtest.Server, client *http.Client, sent *providerdtest.Journal,
) *providerdtest.Load {
	return providerdtest.StartLoad(callers, func(caller, n int) bool {
		name := fmt.Sprintf("%d-%d", caller, n)
		record, err := server.CreateOnce(client, name)
		if err == nil {
			sent.Acknowledge(record)
		}
		return !server.HasEnded()
	})
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (a accident) strike(t *testing.T, restarts bool) {
	t.Helper()
	const callers = 3
	dir, client, sent := t.TempDir(), contracttest.Client(t), providerdtest.NewJournal()
	database := filepath.Join(dir, "data", "providerd.db")
	server := providerdtest.Serve(t, dir)
	load := createUntilEnd(callers, server, client, sent)
	sent.WaitForMore(t, untilReset)
	// A copy in the middle of a checkpoint is as good an older one as any.
	processtest.Must(t, overwrite(database+".older", database))
	sent.WaitForMore(t, 2*callers*untilReset)
	server.Signal(t, syscall.SIGSTOP)
	files := []string{database, database + "-wal"}
	var errs []error
	for _, file := range files {
		errs = append(errs, overwrite(file+".now", file))
	}
	processtest.Must(t, errors.Join(append(errs, a.inflict(database))...))
	if restarts {
		server.Kill(t)
		load.Stop()
		providerdtest.ExpectExit(t, providerdtest.ServeCommand(t.Context(), dir), providerdtest.ExitFailed, "")
	} else {
		server.Signal(t, syscall.SIGCONT)
		processtest.WaitUntil(t, "the accident is noticed", func() bool {
			// With the tokens and keys of another database, no create gets as far as the files.
			if response, err := client.Get(server.URL + "/readyz"); err == nil {
				_ = response.Body.Close()
			}
			return strings.Contains(server.Stderr.String(), a.words)
		})
		server.Kill(t)
		load.Stop()
	}
	_ = os.Remove(database + "-shm")
	for _, file := range files {
		processtest.Must(t, overwrite(file, file+".now"))
	}
	expectStored(t, dir, sent)
}

// expectStored fails the test if the database lacks what was acknowledged, or is damaged.
func expectStored(t *testing.T, dir string, sent *providerdtest.Journal) {
	t.Helper()
	t.Logf("acknowledged %d", len(sent.Creates))
	providerdtest.CheckIncludes(t, providerdtest.Stored(t, dir), sent.Creates)
	providerdtest.CheckIntegrity(t, filepath.Join(dir, "data", "providerd.db"))
}
