//go:build proof

package upgrade_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
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

// buildNewer returns a program with a further migration. Over PostgreSQL, either build can use the other's database.
func buildNewer(t *testing.T) string {
	t.Helper()
	return build(t, furtherMigration("CREATE TABLE later (pk integer PRIMARY KEY)"))
}

// TestRollingUpgrade replaces the replicas with the newer program, back, and forth again. From the first replacement
// on, the log is followed, and nothing that it has printed differs in the end.
func TestRollingUpgrade(t *testing.T) {
	const replicas, creates = 2, 200
	newer := buildNewer(t)
	f := providerdtest.StartFleet(t, postgrestest.NewCluster(t).CreateDatabase(t), replicas)
	journal := providerdtest.NewJournal()
	// A replica that is being replaced gets no requests, as behind a load balancer that sees it drain.
	var inUse [replicas]sync.RWMutex
	load := journal.Load(8, "upgrade", func(name string) (providerdtest.Record, error) {
		for {
			if number := rand.IntN(replicas); inUse[number].TryRLock() {
				defer inUse[number].RUnlock()
				return providerdtest.ErrorUnlessCreated(f.Create(number, name, ""))
			}
		}
	})
	var follower *providerdtest.Follower
	for _, f.Program = range []string{newer, os.Args[0], newer} {
		for number := range replicas {
			inUse[number].Lock()
			f.Replicas[number].Stop(t)
			f.Start(t, number)
			inUse[number].Unlock()
			if t.Failed() {
				t.FailNow()
			}
			journal.WaitForMore(t, creates)
			if follower == nil {
				follower = providerdtest.StartFollower(t, f.Dir, f.Command)
			}
		}
	}
	load.Stop()
	follower.Verify(t)
	processtest.Equal(t, strings.Count(f.RunCommand(t, "provider", "list"), "\n")-headings,
		len(journal.Creates), "records that this build reads")
	f.Stop(t)
	journal.Compare(t, f.Stored(t, f.URL))
}

// TestUpgradeOverSQLite upgrades a database to the newer program, which migrates it, after which this build refuses it.
// A backup taken before leads back to this build; the newer one does not restore it.
func TestUpgradeOverSQLite(t *testing.T) {
	newer, dir, client := buildNewer(t), t.TempDir(), contracttest.Client(t)
	createWith := func(program string) {
		t.Helper()
		server := providerdtest.MustStart(t, as(program, providerdtest.ServeCommand(t.Context(), dir)))
		server.Create(t, client)
		server.Stop(t)
	}
	command := func(words ...string) *exec.Cmd { return providerdtest.Command(t.Context(), dir, words...) }
	createWith(os.Args[0])
	processtest.Run(t, command("backup", "before.db"))
	expectOlder(t, newer, command)
	createWith(newer)
	processtest.Equal(t, strings.Count(processtest.Run(t, as(newer, command("provider", "list"))), "\n")-headings,
		2, "records that the newer program reads, one from each")
	providerdtest.ExpectExit(t, providerdtest.ServeCommand(t.Context(), dir), providerdtest.ExitFailed, "use a newer providerd")
	restore := []string{"restore", "before.db", "--replace"}
	providerdtest.ExpectExit(t, as(newer, command(restore...)), providerdtest.ExitFailed, "schema version is [0-9]+")
	processtest.Run(t, command(restore...))
	processtest.Equal(t, providerdtest.StoredPKs(t, dir), []int64{1}, "providers from before the upgrade")
	createWith(os.Args[0])
}

// expectOlder checks that a program refuses a database of this build, but its doctor only warns of it.
func expectOlder(t *testing.T, newer string, command func(words ...string) *exec.Cmd) {
	t.Helper()
	const refusal = `its schema version is [0-9]+ but this program needs 99999; run "providerd serve" of this version to migrate it`
	providerdtest.ExpectExit(t, as(newer, command("token", "list")), providerdtest.ExitFailed, refusal)
	const warning = `(?m)^warn +schema +.*its schema version is [0-9]+ but this program needs 99999; run "providerd migrate", or let "providerd serve" migrate it`
	providerdtest.ExpectExit(t, as(newer, command("doctor")), 0, warning)
}

// TestChangesDuringUpgrade updates and deletes records with the newer program while a replica of this build still
// serves. It reads the updated record, refuses a retry of the first body, and creates what was deleted again.
func TestChangesDuringUpgrade(t *testing.T) {
	newer := buildNewer(t)
	f := providerdtest.StartFleet(t, postgrestest.NewCluster(t).CreateDatabase(t), 2)
	created := map[string]providerdtest.Record{}
	for _, name := range []string{"updated", "deleted"} {
		created[name] = processtest.Try(providerdtest.ErrorUnlessCreated(f.Create(0, name, ""))).Must(t)
	}
	command := func(words ...string) *exec.Cmd { return f.Command(t.Context(), words...) }
	runNewer := func(words ...string) string { return processtest.Run(t, as(newer, command(words...))) }
	expectOlder(t, newer, command)
	f.Program = newer
	f.Restart(t, 0, func() {})
	runNewer("provider", "update", fmt.Sprint(created["updated"].PK), "redirect_uris=https://app.example.com/callback", "--yes")
	runNewer("provider", "delete", fmt.Sprint(created["deleted"].PK), "--yes")
	for number := range f.Replicas {
		if status, _, err := f.Create(number, "updated", ""); err != nil || status != http.StatusUnprocessableEntity {
			t.Errorf("replica %d: a retry of the first body is %d, %v", number, status, err)
		}
	}
	again, err := providerdtest.ErrorUnlessCreated(f.Create(1, "deleted", ""))
	processtest.Expect(t, err == nil && again.PK != created["deleted"].PK, "created again as %v, %v", again, err)
	processtest.Contains(t, f.RunCommand(t, "provider", "show", fmt.Sprint(created["updated"].PK)), "/callback")
	f.RunCommand(t, "audit")
	runNewer("provider", "delete", fmt.Sprint(again.PK), "--yes")
	audit := runNewer("audit")
	for event, want := range map[string]int{" provider updated ": 1, " provider deleted ": 2, " provider created ": 3} {
		processtest.Equal(t, strings.Count(audit, event), want, "events%s in %s", event, audit)
	}
	f.Stop(t)
}
