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

// beforeReleases stands for the last release while there is none.
const beforeReleases = "37bbd11f05b613dc50e47710c1eebaf7013365d3"

// buildRelease builds the program of the last release out of the history.
func buildRelease(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	const script = `release=$(git describe --tags --abbrev=0 2>/dev/null || echo "$1")
git -C "$(git rev-parse --show-toplevel)" archive "$release" | tar --extract --directory "$2"
cd "$2" && go build -o providerd ./cmd/providerd`
	build := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script, "bash", beforeReleases, folder)
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the last release: %v: %s", err, output)
	}
	return filepath.Join(folder, "providerd")
}

// rollout exchanges replicas under load. A replica that is exchanged gets no requests, as behind a load balancer that
// sees it drain.
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

// exchange lets another program run in the place of a replica.
func (r *rollout) exchange(t *testing.T, number int, program string) {
	t.Helper()
	r.inUse[number].Lock()
	defer r.inUse[number].Unlock()
	if err := r.Replicas[number].Stop(); err != nil {
		t.Errorf("replica %d: %v: %s", number, err, r.Replicas[number].Stderr)
	}
	r.Program = program
	if r.Start(t, number); t.Failed() {
		t.FailNow()
	}
}

// TestRollingUpgrade exchanges the replicas of the last release for those of this one, back, and forth again.
func TestRollingUpgrade(t *testing.T) {
	const replicas, creates = 2, 200
	old, made := buildRelease(t), providerdtest.NewJournal()
	r := &rollout{providerdtest.StartFleet(t, old, postgrestest.NewCluster(t).CreateDatabase(t), replicas), make([]sync.RWMutex, replicas)}
	load := made.Load(8, "upgrade", r.create)
	for _, program := range []string{os.Args[0], old, os.Args[0]} {
		for number := range replicas {
			r.exchange(t, number, program)
			made.WaitForMore(t, creates)
		}
	}
	load.Stop()
	const headings = 1
	if lines := strings.Count(r.RunCommand(t, old, "provider", "list"), "\n") - headings; lines != len(made.Creates) {
		t.Errorf("the last release reads %d records, want %d", lines, len(made.Creates))
	}
	r.Stop(t)
	made.Compare(t, r.Stored(t, r.URL))
}

// TestUpgradeOverSQLite lets this program serve a database of the last release, and that one refuse it afterwards.
func TestUpgradeOverSQLite(t *testing.T) {
	old, folder, client := buildRelease(t), t.TempDir(), contracttest.Client(t)
	for _, program := range []string{old, os.Args[0]} {
		createWith(t, client, program, folder)
	}
	if stored := providerdtest.StoredPKs(t, folder); len(stored) != 2 {
		t.Errorf("%v are stored, want one of each program", stored)
	}
	_, err := providerdtest.StartProgram(t.Context(), old, folder, nil)
	if err == nil || !strings.Contains(err.Error(), "use a newer providerd") {
		t.Errorf("the last release starts over a newer database with %v", err)
	}
}

// createWith creates a provider with a program that serves the database in a folder.
func createWith(t *testing.T, client *http.Client, program, folder string) {
	t.Helper()
	server, err := providerdtest.StartProgram(t.Context(), program, folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	server.Create(t, client)
	if err := server.Stop(); err != nil {
		t.Errorf("%v: %s", err, server.Stderr)
	}
}

// buildNewer builds a program whose schema over SQLite has one level more than that of this one.
func buildNewer(t *testing.T) string {
	t.Helper()
	level := providerdtest.NumberAfter(t, providerdtest.RunCommand(t, t.TempDir(), "version"), "schema level ")
	return providerdtest.BuildReplacing(t, fmt.Sprintf("store/sqlite/migrations/%04d_later.sql", level+1),
		"-- +goose Up\nCREATE TABLE later (pk INTEGER NOT NULL PRIMARY KEY);\n")
}

// TestUpgradeOverSQLiteAndBack lets a newer program serve a database, and this one go back to the backup of before.
func TestUpgradeOverSQLiteAndBack(t *testing.T) {
	newer, folder, client := buildNewer(t), t.TempDir(), contracttest.Client(t)
	createWith(t, client, os.Args[0], folder)
	providerdtest.RunCommand(t, folder, "backup", "before.db")
	createWith(t, client, newer, folder)
	_, err := providerdtest.StartProgram(t.Context(), os.Args[0], folder, nil)
	if err == nil || !strings.Contains(err.Error(), "use a newer providerd") {
		t.Errorf("this program starts over a newer database with %v", err)
	}
	providerdtest.RunCommand(t, folder, "restore", "before.db", "--replace")
	if stored := providerdtest.StoredPKs(t, folder); !slices.Equal(stored, []int32{1}) {
		t.Errorf("%v are stored, want what was there before the upgrade", stored)
	}
	createWith(t, client, os.Args[0], folder)
}
