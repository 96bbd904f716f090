package commands_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// underLoad runs a function while callers create at a server in dir, and returns what they created. No create may fail.
func underLoad(t *testing.T, dir string, callers int, during func(made *providerdtest.Journal)) *providerdtest.Journal {
	t.Helper()
	server, made := providerdtest.Serve(t, dir), providerdtest.NewJournal()
	client := contracttest.ClientOver(t, &http.Transport{MaxIdleConnsPerHost: callers})
	load := made.Load(callers, "load", func(name string) (providerdtest.Record, error) {
		return server.CreateOnce(client, name)
	})
	during(made)
	load.Stop()
	server.Stop(t)
	if len(made.Creates) == 0 || len(made.Failures) > 0 {
		t.Errorf("%d creates succeeded, %d failed, such as %v", len(made.Creates), len(made.Failures), providerdtest.Sample(made.Failures))
	}
	return made
}

// TestCommandAfterPartialCheckpoint runs a command after the first checkpoint of a database that a program was reading.
// Such a checkpoint copies only what has not changed since.
func TestCommandAfterPartialCheckpoint(t *testing.T) {
	t.Parallel()
	// A checkpoint is due after 512 transactions (walTransactions of store/sqlite), and runs beside the next ones.
	const creates = 512 + 50
	dir := t.TempDir()
	file := filepath.Join(dir, "data", "providerd.db")
	underLoad(t, dir, 1, func(made *providerdtest.Journal) {
		db, err := sql.Open("sqlite3", file)
		processtest.Must(t, err)
		reader, err := db.BeginTx(t.Context(), nil)
		processtest.Must(t, err)
		var count int
		processtest.Must(t, reader.QueryRow("SELECT count(*) FROM providers").Scan(&count))
		before, err := os.Stat(file)
		processtest.Must(t, err)
		made.WaitForMore(t, creates)
		after, err := os.Stat(file)
		if processtest.Must(t, err); after.Size() == before.Size() {
			t.Error("no checkpoint enlarged the file")
		}
		providerdtest.RunCommand(t, dir, "provider", "list", "--limit", "1")
		processtest.Must(t, reader.Rollback(), db.Close())
	})
}

// TestTokenRenewedUnderLoad renews the token of callers that pick the new one up from a file; no request is refused.
func TestTokenRenewedUnderLoad(t *testing.T) {
	t.Parallel()
	const renewals, creates = 3, 100
	dir := t.TempDir()
	made := underLoad(t, dir, 4, func(made *providerdtest.Journal) {
		for id := range renewals {
			made.WaitForMore(t, creates)
			const renew = "umask 077; providerd token renew %d --quiet >next-token; mv next-token data/initial-token"
			providerdtest.RunShell(t, dir, fmt.Sprintf(renew, id+1))
		}
		made.WaitForMore(t, creates)
	})
	made.Compare(t, providerdtest.Stored(t, dir))
}

// TestResealUnderLoad rotates the key and reseals all old secrets during creates, none of which may fail.
func TestResealUnderLoad(t *testing.T) {
	t.Parallel()
	// The default is small; the proof "reseal" has more thousands of rows.
	rows := 1000 * processtest.ProofSize(t, "reseal", 2)
	dir := t.TempDir()
	providerdtest.Fill(t, dir, rows)
	made := underLoad(t, dir, 8, func(*providerdtest.Journal) {
		providerdtest.RunCommand(t, dir, "key", "rotate")
		t.Log(providerdtest.RunCommand(t, dir, "key", "reseal"))
	})
	isOld := func(record providerdtest.Record) bool { return !strings.HasPrefix(record.Name, "load-") }
	made.Compare(t, slices.DeleteFunc(providerdtest.Stored(t, dir), isOld))
	providerdtest.CheckFilled(t, dir, rows)
}

// TestBackupInterrupted ends a backup with each signal. No file has the name of a backup, and the next one succeeds.
func TestBackupInterrupted(t *testing.T) {
	t.Parallel()
	const rows = 40_000
	dir := t.TempDir()
	providerdtest.Fill(t, dir, rows)
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT} {
		name := strings.ReplaceAll(signal.String(), " ", "-") + ".db"
		said := interrupt(t, dir, name, signal, "backup", name)
		left := drafts(t, dir, name)
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("interrupted by %s, a backup exists: %v", signal, err)
		}
		if signal != syscall.SIGKILL && (len(left) > 0 || !strings.HasSuffix(said, "providerd: interrupted; no backup was written\n")) {
			t.Errorf("interrupted by %s, it leaves %v and prints %s", signal, left, said)
		}
		processtest.Expect(t, signal != syscall.SIGKILL || len(left) != 0,
			"killed, it leaves no file, so the test proves nothing")
		providerdtest.RunCommand(t, dir, "backup", "next-"+name)
		if now := drafts(t, dir, "*"); !slices.Equal(now, left) {
			t.Errorf("the next backup leaves %v", now)
		}
		for _, path := range left {
			processtest.Must(t, os.Remove(path))
		}
		providerdtest.CheckIntegrity(t, filepath.Join(dir, "next-"+name))
	}
}

// interrupt sends a command a signal once it writes a file, and returns its messages.
func interrupt(t *testing.T, dir, file string, signal syscall.Signal, arguments ...string) string {
	t.Helper()
	known := drafts(t, dir, file)
	child, err := processtest.Start(providerdtest.Command(t.Context(), dir, arguments...))
	processtest.Must(t, err)
	processtest.WaitUntil(t, file+" is being written", func() bool {
		isNew := func(path string) bool { return !slices.Contains(known, path) }
		return slices.ContainsFunc(drafts(t, dir, file), isNew)
	})
	if err := child.Stop(signal); err == nil {
		t.Fatalf("%v finished before it was interrupted", arguments)
	}
	return child.Stderr.String()
}

func drafts(t *testing.T, dir, name string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, filepath.Dir(name), "."+filepath.Base(name)+"[0-9]*"))
	processtest.Must(t, err)
	return found
}

// TestRestoreInterrupted interrupts a restore, which leaves the previous database.
func TestRestoreInterrupted(t *testing.T) {
	t.Parallel()
	const rows = 40_000
	dir := t.TempDir()
	providerdtest.Fill(t, dir, rows)
	providerdtest.RunCommand(t, dir, "backup", "backup.db")
	providerdtest.RunCommand(t, dir, "provider", "delete", "17", "--yes")
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		interrupt(t, dir, "data/providerd.db", signal, "restore", "backup.db", "--replace")
		providerdtest.ExpectExit(t, providerdtest.Command(t.Context(), dir, "provider", "show", "17"), providerdtest.ExitFailed, "no such record")
	}
	providerdtest.RunCommand(t, dir, "restore", "backup.db", "--replace")
	providerdtest.RunCommand(t, dir, "provider", "show", "17")
	if left := drafts(t, dir, "data/*"); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
