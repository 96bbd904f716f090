//go:build upgrade

package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

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
	*fleet
	inUse []sync.RWMutex
	// sent, and of these acknowledged, are creates of all callers.
	sent, acknowledged atomic.Int64
}

// load sends creates from some callers, each to whatever replica is in use, until the returned function is called.
func (r *rollout) load(t *testing.T, callers int) (stop func()) {
	t.Helper()
	var group sync.WaitGroup
	var isOver atomic.Bool
	for caller := range callers {
		group.Go(func() {
			for turn := caller; !isOver.Load(); turn++ {
				replica := turn % len(r.replicas)
				if r.inUse[replica].TryRLock() {
					r.createAt(t, replica)
					r.inUse[replica].RUnlock()
				}
			}
		})
	}
	return func() {
		isOver.Store(true)
		group.Wait()
	}
}

func (r *rollout) createAt(t *testing.T, replica int) {
	t.Helper()
	key := fmt.Sprint("upgrade-", r.sent.Add(1))
	status, _, err := r.create(replica, key, key)
	if err != nil || status != http.StatusCreated {
		t.Errorf("%s at replica %d: status is %d, %v", key, replica, status, err)
		return
	}
	r.acknowledged.Add(1)
}

// exchange lets another program run in the place of each replica, one after the other, and waits until each has worked.
func (r *rollout) exchange(t *testing.T, program string) {
	t.Helper()
	const creates = 200
	for i := range r.replicas {
		r.inUse[i].Lock()
		if err := r.replicas[i].stop(); err != nil {
			t.Errorf("replica %d: %v: %s", i, err, r.replicas[i].stderr)
		}
		r.program = program
		r.start(t, i)
		r.inUse[i].Unlock()
		if t.Failed() {
			t.FailNow()
		}
		begun := r.acknowledged.Load()
		waitUntil(t, "creates go on", func() bool { return r.acknowledged.Load() >= begun+creates || t.Failed() })
	}
}

// TestRollingUpgrade exchanges the replicas of the last release for those of this one, back, and forth again.
func TestRollingUpgrade(t *testing.T) {
	old := buildRelease(t)
	r := &rollout{
		fleet: &fleet{
			program: old, folder: t.TempDir(), url: postgrestest.NewCluster(t).CreateDatabase(t),
			replicas: make([]*process, 2), client: contracttest.Client(t),
		},
		inUse: make([]sync.RWMutex, 2),
	}
	r.begin(t)
	stop := r.load(t, 8)
	for _, program := range []string{os.Args[0], old, os.Args[0]} {
		r.exchange(t, program)
	}
	stop()
	acknowledged := int(r.acknowledged.Load())
	t.Logf("%d creates were sent, %d of them failed", r.sent.Load(), int(r.sent.Load())-acknowledged)
	const headings = 1
	list := exec.CommandContext(t.Context(), old, "provider", "list")
	list.Dir, list.Env = r.folder, append(os.Environ(), r.environment()...)
	output, err := list.Output()
	if lines := strings.Count(string(output), "\n") - headings; err != nil || lines != acknowledged {
		t.Errorf("the last release reads %d records, %v, want %d", lines, err, acknowledged)
	}
	r.stop(t)
	found := r.records(t)
	if len(found) != acknowledged {
		t.Errorf("%d records are stored, want %d", len(found), acknowledged)
	}
	for name, count := range found {
		if count != 1 {
			t.Errorf("%s is stored %d times", name, count)
		}
	}
}

// TestUpgradeOverSQLite lets this program serve a database of the last release, and that one refuse it afterwards.
func TestUpgradeOverSQLite(t *testing.T) {
	old, folder, client := buildRelease(t), t.TempDir(), contracttest.Client(t)
	for _, program := range []string{old, os.Args[0]} {
		server, err := startProgram(t.Context(), program, folder, nil)
		if err != nil {
			t.Fatal(err)
		}
		createOverHTTP(t, client, server, folder)
		if err := server.stop(); err != nil {
			t.Error(errors.Join(err, errors.New(server.stderr.String())))
		}
	}
	if stored := storedPKs(t, folder); len(stored) != 2 {
		t.Errorf("%v are stored, want one of each program", stored)
	}
	_, err := startProgram(t.Context(), old, folder, nil)
	if err == nil || !strings.Contains(err.Error(), "use a newer providerd") {
		t.Errorf("the last release starts over a newer database with %v", err)
	}
}
