package commands_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
