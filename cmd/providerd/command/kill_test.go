package command

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"example.com/providerd/server/contracttest"
)

// The size of the test: rounds are few in an ordinary run; make faults asks for more.
const (
	defaultKillRounds = 3
	killWorkers       = 16
	acknowledgedAtAll = 200
)

// TestKilledUnderLoad kills the program at random moments under load, again and again. Every acknowledged create must
// be stored once, and a retry with its key must find it.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	folder, client, all, settled := t.TempDir(), contracttest.Client(t), newJournal(), 0
	rounds := countFrom(t, "PROVIDERD_KILL_ROUNDS", defaultKillRounds)
	for round := range rounds {
		sent := killUnderLoad(t, client, folder, fmt.Sprint(round))
		settled += len(storedPKs(t, folder)) - len(all.creates) - len(sent.creates)
		retry(t, client, folder, sent)
		maps.Copy(all.creates, sent.creates)
	}
	t.Logf("%d kills, stored but not acknowledged %d", rounds, settled)
	all.compare(t, storedIn(t, folder))
	checkIntegrity(t, filepath.Join(folder, "data", "providerd.db"))
}

// killUnderLoad starts the program and kills it while it is sent creates. Each caller has one that was not answered.
func killUnderLoad(t *testing.T, client *http.Client, folder, prefix string) *journal {
	t.Helper()
	server, err := startProcess(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	sent := newJournal()
	load := sent.load(killWorkers, prefix, func(name string) (created, error) {
		return onlyCreated(server.create(client, folder, name, ""))
	})
	sent.await(t, acknowledgedAtAll+rand.IntN(acknowledgedAtAll))
	if err := server.kill(); err != nil {
		t.Fatal(err)
	}
	load.end()
	return sent
}

// retry sends creates again: those that were acknowledged, and those whose answer was lost.
func retry(t *testing.T, client *http.Client, folder string, sent *journal) {
	t.Helper()
	server, err := startProcess(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	for name := range sent.failed {
		one, err := onlyCreated(server.create(client, folder, name, ""))
		if err != nil {
			t.Errorf("retry of %s: %v", name, err)
		}
		sent.creates[name] = one
	}
	for name, one := range sent.creates {
		if again, err := onlyCreated(server.create(client, folder, name, "")); err != nil || again != one {
			t.Errorf("retry of %s gives %v, %v, want %v", name, again, err, one)
		}
	}
	if err := server.stop(); err != nil {
		t.Error(err)
	}
}

func checkIntegrity(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	var verdict string
	err = db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict)
	if err := errors.Join(err, db.Close()); err != nil || verdict != "ok" {
		t.Errorf("integrity_check says %q, %v", verdict, err)
	}
}
