//go:build slow

package commands_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
)

// The size of the test. The default is few rounds; "make reseal" sets more.
const (
	defaultRetireRounds = 4
	createsARound       = 20
	// createInterval keeps the number of secrets proportional to the rounds, each of which reseals all.
	createInterval = 10 * time.Millisecond
	// restoredAfter is after how many rounds a backup is restored. Every so many rounds, there is a backup.
	restoredAfter, backupEvery = 2, 4
	// longestCommand is roughly how long the commands take that are killed at a random moment.
	longestCommand = 150 * time.Millisecond
)

// retiring is a server whose keys are rotated and retired repeatedly, while it and the commands are killed.
type retiring struct {
	dir    string
	client *http.Client
	made   *providerdtest.Journal
	// mutex guards the server, which must not be used while it is replaced.
	mutex  sync.RWMutex
	server *providerdtest.Server
	// kills counts killed commands and servers, refused the responses other than 201, replayed the creates that were
	// sent again, and named the restores that were refused with the name of the missing key.
	commandKills, serverKills, named int
	refused, replayed                atomic.Int64
}

// Keys are rotated and retired under load, while commands and server are killed at random moments. All acknowledged
// records can be read at any time, and older backups with the kept keys.
func TestKeysAreRetiredUnderLoad(t *testing.T) {
	t.Parallel()
	rounds, start := providerdtest.EnvCount(t, "PROVIDERD_RETIRE_ROUNDS", defaultRetireRounds), time.Now()
	r := &retiring{dir: t.TempDir(), client: contracttest.Client(t), made: providerdtest.NewJournal()}
	r.start(t)
	pace := time.NewTicker(createInterval)
	defer pace.Stop()
	load := r.made.Load(4, "load", func(name string) (providerdtest.Record, error) {
		<-pace.C
		return r.persist(name)
	})
	defer load.Stop()
	r.made.WaitForMore(t, createsARound)
	replays := providerdtest.StartLoad(1, func(int, int) bool { return r.replay(t) })
	defer replays.Stop()
	backups := map[int]map[string]providerdtest.Record{}
	for round := range rounds {
		r.made.WaitForMore(t, createsARound)
		if round%backupEvery == 0 {
			backups[round] = r.made.Acknowledged()
			providerdtest.RunCommand(t, r.dir, "backup", backupOf(round))
		}
		r.round(t)
		if older := round - restoredAfter; backups[older] != nil {
			r.restore(t, backupOf(older), backups[older])
		}
	}
	load.Stop()
	replays.Stop()
	r.server.Stop(t)
	r.made.Compare(t, providerdtest.Stored(t, r.dir))
	providerdtest.CheckIntegrity(t, filepath.Join(r.dir, "data", "providerd.db"))
	t.Logf("%d rounds in %v, kills of commands %d, of the server %d, replays %d, restorations refused with the key %d",
		rounds, time.Since(start).Round(time.Second), r.commandKills, r.serverKills, r.replayed.Load(), r.named)
	if refused := r.refused.Load(); refused > 0 {
		t.Errorf("%d creates were refused", refused)
	}
}

func backupOf(round int) string { return fmt.Sprintf("older-%d.db", round) }

// round rotates the key, reseals all secrets and retires old keys. Each command may be killed before it completes,
// and so may the server.
func (r *retiring) round(t *testing.T) {
	t.Helper()
	for _, action := range []string{"rotate", "reseal", "retire"} {
		var group sync.WaitGroup
		if rand.IntN(4) == 0 {
			r.serverKills++
			group.Go(func() { r.restart(t) })
		}
		if rand.IntN(2) == 0 {
			r.kill(t, "key", action)
		}
		providerdtest.RunCommand(t, r.dir, "key", action)
		group.Wait()
	}
}

// kill kills a command at a random moment, unless it has ended.
func (r *retiring) kill(t *testing.T, arguments ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rand.N(longestCommand))
	defer cancel()
	if output, err := providerdtest.Command(ctx, r.dir, arguments...).CombinedOutput(); ctx.Err() != nil {
		r.commandKills++
	} else if err != nil {
		t.Errorf("%v: %v: %s", arguments, err, output)
	}
}

func (r *retiring) start(t *testing.T) {
	t.Helper()
	server, err := providerdtest.Start(providerdtest.ServeCommand(t.Context(), r.dir))
	if err != nil {
		t.Error(err)
		return
	}
	r.server = server
}

func (r *retiring) restart(t *testing.T) {
	t.Helper()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.server.Kill(t)
	r.start(t)
}

// persist sends a create, and repeats it if the server is killed, once it runs again.
func (r *retiring) persist(name string) (record providerdtest.Record, err error) {
	for range 10 {
		r.mutex.RLock()
		server := r.server
		r.mutex.RUnlock()
		var status int
		if status, record, err = server.CreateNamed(r.client, name, ""); err == nil && status == http.StatusCreated {
			return record, nil
		}
		if err == nil {
			err = fmt.Errorf("status is %d", status)
			r.refused.Add(1)
		}
	}
	return providerdtest.Record{}, err
}

// replay repeats a create, whose secret must be unchanged.
func (r *retiring) replay(t *testing.T) bool {
	before := r.made.Any()
	again, err := r.persist(before.Name)
	if err != nil || again != before {
		t.Errorf("replay of %s: provider %d, was %d, %v", before.Name, again.PK, before.PK, err)
	}
	r.replayed.Add(1)
	return true
}

// restore restores a backup in another directory, not with the current keyset but with the one that the error names.
func (r *retiring) restore(t *testing.T, backup string, want map[string]providerdtest.Record) {
	t.Helper()
	dir, path := t.TempDir(), filepath.Join(r.dir, backup)
	providerdtest.RunShell(t, dir, "mkdir --mode=700 data; cp --preserve=mode "+r.dir+"/data/keyset.json* data")
	output, err := providerdtest.Command(t.Context(), dir, "restore", path).CombinedOutput()
	named := regexp.MustCompile(`it lacks key \d+, which was retired .*; restore (\S+), which has the key,`).FindSubmatch(output)
	if err == nil || named == nil {
		t.Errorf("restored with the current keyset: %v, %s", err, output)
		return
	}
	r.named++
	kept := filepath.Join("data", string(named[1]))
	providerdtest.RunCommand(t, dir, "restore", path, "--keyset", kept)
	if err := os.Rename(filepath.Join(dir, kept), filepath.Join(dir, "data", "keyset.json")); err != nil {
		t.Fatal(err)
	}
	found := map[string]providerdtest.Record{}
	for _, record := range providerdtest.Stored(t, dir) {
		if _, isDuplicate := found[record.Name]; isDuplicate {
			t.Errorf("%s is in the backup twice", record.Name)
		}
		found[record.Name] = record
	}
	for name, record := range want {
		if found[name] != record {
			t.Errorf("%s: the backup has provider %d, want %d", name, found[name].PK, record.PK)
		}
	}
}
