//go:build proof

package upgrade_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// headings is how many lines a list has before its records.
const headings = 1

// programs returns this build, and one of this tree with a further migration. Over PostgreSQL, either can use the
// database of the other.
func programs(t *testing.T) (old, newer string) {
	t.Helper()
	dir, replaced := t.TempDir(), map[string]string{}
	for database, version := range map[string]string{"sqlite": "randomblob(16)", "postgres": "uuid_send(gen_random_uuid())"} {
		migration := `-- +goose Up
ALTER TABLE providers ADD COLUMN later text;
CREATE TABLE later (pk integer PRIMARY KEY);
UPDATE keyset SET version = ` + version + ";\n"
		file := filepath.Join(dir, database+".sql")
		processtest.Must(t, os.WriteFile(file, []byte(migration), 0o600))
		replaced[providerdtest.Path(t, "store/"+database+"/migrations/99999_later.sql")] = file
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	file := filepath.Join(dir, "overlay.json")
	processtest.Must(t, errors.Join(err, os.WriteFile(file, overlay, 0o600)))
	newer = providerdtest.Build(t, "-overlay", file)
	versions := run(t, newer, "", "version")
	if !strings.Contains(versions, "schema version 99999 (SQLite), 99999 (PostgreSQL)") {
		t.Fatalf("the newer program has %s", versions)
	}
	return os.Args[0], newer
}

// run runs a command of a program in dir.
func run(t *testing.T, program, dir string, words ...string) string {
	t.Helper()
	return processtest.Run(t, as(program, providerdtest.Command(t.Context(), dir, words...)))
}

// runOver runs a command of a program over the database of replicas.
func runOver(t *testing.T, program string, f *providerdtest.Fleet, words ...string) string {
	t.Helper()
	return processtest.Run(t, as(program, f.Command(t.Context(), words...)))
}

// as returns a command that a program runs.
func as(program string, command *exec.Cmd) *exec.Cmd {
	command.Path = program
	return command
}

// rollout replaces replicas under load. A replica that is being replaced gets no requests, as behind a load balancer
// that sees it drain.
type rollout struct {
	*providerdtest.Fleet
	inUse []sync.RWMutex
}

// create sends a create to a replica that is in use.
func (r *rollout) create(name string) (providerdtest.Record, error) {
	for {
		if number := rand.IntN(len(r.inUse)); r.inUse[number].TryRLock() {
			defer r.inUse[number].RUnlock()
			return providerdtest.ErrorUnlessCreated(r.Create(number, name, ""))
		}
	}
}

// replace replaces a replica with another program.
func (r *rollout) replace(t *testing.T, number int, program string) {
	t.Helper()
	r.inUse[number].Lock()
	defer r.inUse[number].Unlock()
	r.Replicas[number].Stop(t)
	r.Program = program
	if r.Start(t, number); t.Failed() {
		t.FailNow()
	}
}

// TestRollingUpgrade replaces the replicas with the newer program, back, and forth again. From the first replacement
// on, the log is followed, and nothing that it has printed differs in the end.
func TestRollingUpgrade(t *testing.T) {
	const replicas, creates = 2, 200
	old, newer := programs(t)
	journal := providerdtest.NewJournal()
	r := &rollout{providerdtest.StartFleet(t, postgrestest.NewCluster(t).CreateDatabase(t), replicas), make([]sync.RWMutex, replicas)}
	load := journal.Load(8, "upgrade", r.create)
	var follower *providerdtest.Follower
	for _, program := range []string{newer, old, newer} {
		for number := range replicas {
			r.replace(t, number, program)
			journal.WaitForMore(t, creates)
			if follower == nil {
				follower = providerdtest.StartFollower(t, r.Dir, r.Command)
			}
		}
	}
	load.Stop()
	follower.Verify(t)
	if lines := strings.Count(runOver(t, old, r.Fleet, "provider", "list"), "\n") - headings; lines != len(journal.Creates) {
		t.Errorf("this build reads %d records, want %d", lines, len(journal.Creates))
	}
	r.Stop(t)
	journal.Compare(t, r.Stored(t, r.URL))
}

// TestUpgradeOverSQLite upgrades a database to the newer program, which migrates it, after which this build refuses it.
// A backup taken before leads back to this build; the newer one does not restore it.
func TestUpgradeOverSQLite(t *testing.T) {
	old, newer := programs(t)
	dir, client := t.TempDir(), contracttest.Client(t)
	createWith(t, client, old, dir)
	run(t, old, dir, "backup", "before.db")
	expectOlder(t, newer, func(words ...string) *exec.Cmd { return providerdtest.Command(t.Context(), dir, words...) })
	createWith(t, client, newer, dir)
	if lines := strings.Count(run(t, newer, dir, "provider", "list"), "\n") - headings; lines != 2 {
		t.Errorf("the newer program reads %d records, want one from each program", lines)
	}
	if _, err := start(t, old, dir); err == nil || !strings.Contains(err.Error(), "use a newer providerd") {
		t.Errorf("the older program started: %v", err)
	}
	restore := providerdtest.Command(t.Context(), dir, "restore", "before.db", "--replace")
	providerdtest.ExpectExit(t, as(newer, restore), providerdtest.ExitFailed, "schema version is 1")
	run(t, old, dir, "restore", "before.db", "--replace")
	if stored := providerdtest.StoredPKs(t, dir); !slices.Equal(stored, []int64{1}) {
		t.Errorf("stored pks are %v, want those from before the upgrade", stored)
	}
	createWith(t, client, old, dir)
}

// expectOlder checks that a program refuses a database of this build, but its doctor only warns of it.
func expectOlder(t *testing.T, newer string, command func(words ...string) *exec.Cmd) {
	t.Helper()
	const refusal = `its schema version is 1 but this program needs 99999; run "providerd serve" of this version to migrate it`
	providerdtest.ExpectExit(t, as(newer, command("token", "list")), providerdtest.ExitFailed, refusal)
	const warning = `(?m)^warn +schema +.*its schema version is 1 but this program needs 99999; "providerd serve" migrates it`
	providerdtest.ExpectExit(t, as(newer, command("doctor")), 0, warning)
}

// start starts a program that serves the database in dir.
func start(t *testing.T, program, dir string) (*providerdtest.Server, error) {
	t.Helper()
	return providerdtest.Start(as(program, providerdtest.ServeCommand(t.Context(), dir)))
}

// createWith creates a provider with a program that serves the database in dir.
func createWith(t *testing.T, client *http.Client, program, dir string) {
	t.Helper()
	server, err := start(t, program, dir)
	processtest.Must(t, err)
	server.Create(t, client)
	server.Stop(t)
}

// TestChangesDuringUpgrade updates and deletes records with the newer program while a replica of this build still
// serves. It reads the updated record, refuses a retry of the first body, and creates what was deleted again.
func TestChangesDuringUpgrade(t *testing.T) {
	old, newer := programs(t)
	f := providerdtest.StartFleet(t, postgrestest.NewCluster(t).CreateDatabase(t), 2)
	created := map[string]providerdtest.Record{}
	for _, name := range []string{"updated", "deleted"} {
		record, err := providerdtest.ErrorUnlessCreated(f.Create(0, name, ""))
		processtest.Must(t, err)
		created[name] = record
	}
	expectOlder(t, newer, func(words ...string) *exec.Cmd { return f.Command(t.Context(), words...) })
	f.Program = newer
	f.Restart(t, 0, func() {})
	runOver(t, newer, f, "provider", "update", fmt.Sprint(created["updated"].PK),
		"redirect_uris=https://app.example.com/callback", "--yes")
	runOver(t, newer, f, "provider", "delete", fmt.Sprint(created["deleted"].PK), "--yes")
	for number := range f.Replicas {
		if status, _, err := f.Create(number, "updated", ""); err != nil || status != http.StatusUnprocessableEntity {
			t.Errorf("replica %d: a retry of the first body is %d, %v", number, status, err)
		}
	}
	again, err := providerdtest.ErrorUnlessCreated(f.Create(1, "deleted", ""))
	if err != nil || again.PK == created["deleted"].PK {
		t.Errorf("created again as %v, %v", again, err)
	}
	if listed := runOver(t, old, f, "provider", "show", fmt.Sprint(created["updated"].PK)); !strings.Contains(listed, "/callback") {
		t.Errorf("this build shows %s", listed)
	}
	runOver(t, old, f, "audit")
	runOver(t, newer, f, "provider", "delete", fmt.Sprint(again.PK), "--yes")
	audit := runOver(t, newer, f, "audit")
	for event, want := range map[string]int{" provider updated ": 1, " provider deleted ": 2, " provider created ": 3} {
		if count := strings.Count(audit, event); count != want {
			t.Errorf("the audit has %d of%s, want %d: %s", count, event, want, audit)
		}
	}
	f.Stop(t)
}
