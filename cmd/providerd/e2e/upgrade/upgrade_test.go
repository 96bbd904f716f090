//go:build slow

package upgrade_test

import (
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
)

// fallbackRelease is the commit to use as the last release if there are no tags.
const fallbackRelease = "37bbd11f05b613dc50e47710c1eebaf7013365d3"

func buildRelease(t *testing.T) string {
	t.Helper()
	return build(t, `git archive "$(git describe --tags --abbrev=0 2>/dev/null || echo `+fallbackRelease+`)"`, ":")
}

// buildNewer builds this tree with one more SQLite migration.
func buildNewer(t *testing.T) string {
	t.Helper()
	version := providerdtest.NumberAfter(t, providerdtest.RunCommand(t, t.TempDir(), "version"), "schema version ")
	const migration = `printf -- '-- +goose Up\nCREATE TABLE later (pk INTEGER PRIMARY KEY);\n' >store/sqlite/migrations/%04d_later.sql`
	return build(t, "git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from -",
		fmt.Sprintf(migration, version+1))
}

// build packs a tree, changes the copy and builds the program.
func build(t *testing.T, pack, change string) string {
	t.Helper()
	dir := t.TempDir()
	script := `cd "$(git rev-parse --show-toplevel)" && ` + pack + ` | tar --extract --directory "$0"
cd "$0"; ` + change + `; go build -o providerd ./cmd/providerd`
	build := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script, dir)
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", pack, err, output)
	}
	return filepath.Join(dir, "providerd")
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

// TestRollingUpgrade replaces the replicas of the last release with this one, back, and forth again. From the first
// replacement on, the log is followed, and nothing that it has printed differs in the end.
func TestRollingUpgrade(t *testing.T) {
	const replicas, creates = 2, 200
	old, journal := buildRelease(t), providerdtest.NewJournal()
	r := &rollout{providerdtest.StartFleet(t, old, postgrestest.NewCluster(t).CreateDatabase(t), replicas), make([]sync.RWMutex, replicas)}
	load := journal.Load(8, "upgrade", r.create)
	var follower *providerdtest.Follower
	for _, program := range []string{os.Args[0], old, os.Args[0]} {
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
	const headings = 1
	if lines := strings.Count(r.RunCommand(t, old, "provider", "list"), "\n") - headings; lines != len(journal.Creates) {
		t.Errorf("the last release reads %d records, want %d", lines, len(journal.Creates))
	}
	r.Stop(t)
	journal.Compare(t, r.Stored(t, r.URL))
}

// TestUpgradeOverSQLite serves a database of the last release, which must then refuse it.
func TestUpgradeOverSQLite(t *testing.T) {
	old, dir, client := buildRelease(t), t.TempDir(), contracttest.Client(t)
	for _, program := range []string{old, os.Args[0]} {
		createWith(t, client, program, dir)
	}
	if stored := providerdtest.StoredPKs(t, dir); len(stored) != 2 {
		t.Errorf("stored pks are %v, want one from each program", stored)
	}
	expectRefused(t, old, dir)
}

// start starts a program that serves the database in dir.
func start(t *testing.T, program, dir string) (*providerdtest.Server, error) {
	t.Helper()
	command := providerdtest.ServeCommand(t.Context(), dir)
	command.Path = program
	return providerdtest.Start(command)
}

// createWith creates a provider with a program that serves the database in dir.
func createWith(t *testing.T, client *http.Client, program, dir string) {
	t.Helper()
	server, err := start(t, program, dir)
	if err != nil {
		t.Fatal(err)
	}
	server.Create(t, client)
	server.Stop(t)
}

// expectRefused checks that a program does not start with the newer database in dir.
func expectRefused(t *testing.T, program, dir string) {
	t.Helper()
	_, err := start(t, program, dir)
	if err == nil || !strings.Contains(err.Error(), "use a newer providerd") {
		t.Errorf("the older program started: %v", err)
	}
}

// TestUpgradeOverSQLiteAndBack upgrades a database to a newer program, and goes back with a backup taken before.
func TestUpgradeOverSQLiteAndBack(t *testing.T) {
	newer, dir, client := buildNewer(t), t.TempDir(), contracttest.Client(t)
	createWith(t, client, os.Args[0], dir)
	providerdtest.RunCommand(t, dir, "backup", "before.db")
	createWith(t, client, newer, dir)
	expectRefused(t, os.Args[0], dir)
	providerdtest.RunCommand(t, dir, "restore", "before.db", "--replace")
	if stored := providerdtest.StoredPKs(t, dir); !slices.Equal(stored, []int32{1}) {
		t.Errorf("stored pks are %v, want those from before the upgrade", stored)
	}
	createWith(t, client, os.Args[0], dir)
}

// TestChangesDuringUpgrade updates and deletes records while a replica of the last release still serves. It reads the
// updated record, refuses a retry of the first body, and creates what was deleted again.
func TestChangesDuringUpgrade(t *testing.T) {
	old := buildRelease(t)
	f := providerdtest.StartFleet(t, old, postgrestest.NewCluster(t).CreateDatabase(t), 2)
	created := map[string]providerdtest.Record{}
	for _, name := range []string{"updated", "deleted"} {
		record, err := providerdtest.ErrorUnlessCreated(f.Create(0, name, ""))
		if err != nil {
			t.Fatal(err)
		}
		created[name] = record
	}
	f.Program = os.Args[0]
	f.Restart(t, 0, func() {})
	f.RunCommand(t, f.Program, "provider", "update", fmt.Sprint(created["updated"].PK),
		"--redirect-uri", "https://app.example.com/callback", "--yes")
	f.RunCommand(t, f.Program, "provider", "delete", fmt.Sprint(created["deleted"].PK), "--yes")
	for number := range f.Replicas {
		if status, _, err := f.Create(number, "updated", ""); err != nil || status != http.StatusUnprocessableEntity {
			t.Errorf("replica %d: a retry of the first body is %d, %v", number, status, err)
		}
	}
	again, err := providerdtest.ErrorUnlessCreated(f.Create(1, "deleted", ""))
	if err != nil || again.PK == created["deleted"].PK {
		t.Errorf("created again as %v, %v", again, err)
	}
	if listed := f.RunCommand(t, old, "provider", "show", fmt.Sprint(created["updated"].PK)); !strings.Contains(listed, "/callback") {
		t.Errorf("the last release shows %s", listed)
	}
	f.RunCommand(t, old, "audit")
	f.RunCommand(t, f.Program, "provider", "delete", fmt.Sprint(again.PK), "--yes")
	audit := f.RunCommand(t, f.Program, "audit")
	for event, want := range map[string]int{" provider updated ": 1, " provider deleted ": 2, " provider created ": 3} {
		if count := strings.Count(audit, event); count != want {
			t.Errorf("the audit has %d of%s, want %d: %s", count, event, want, audit)
		}
	}
	f.Stop(t)
}
