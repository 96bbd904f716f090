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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// The size of the test. The default is few rounds; the proof "reseal" sets more.
const (
	defaultRotateRounds = 4
	createsARound       = 20
	// createInterval is the shortest. Creates become as rare as rotations become slow, so that the number of secrets, all
	// of which each round reseals, is proportional to the rounds.
	createInterval = 10 * time.Millisecond
	// Every so many rounds, there is a backup. So many rounds later, the master key is replaced.
	backupEvery, replacedAfter = 4, 2
)

// rotating is servers whose keys are rotated and replaced, while commands and servers are killed.
type rotating struct {
	*providerdtest.Fleet
	// cluster has the database of the servers, or is nil over SQLite.
	cluster *postgrestest.Cluster
	made    *providerdtest.Journal
	// took is how long the last rotation took that was not killed.
	took time.Duration
	// backups are older ones, which need a master key that the keyset no longer has.
	backups []keptBackup
	// kills counts killed commands, refused the responses other than 201, and replayed the creates that were sent again.
	kills             int
	refused, replayed atomic.Int64
}

// keptBackup is a backup with the keyset file of its time.
type keptBackup struct {
	path, keyset string
	// masterID is the id of the master key.
	masterID string
	records  map[string]providerdtest.Record
}

// Keys are rotated under load, while in each round a command and a server are killed at random moments. All acknowledged
// records can be read at any time, and older backups with the keysets of their times.
func TestKeysAreRotatedUnderLoad(t *testing.T) {
	t.Parallel()
	rounds := processtest.ProofSize(t, "reseal", defaultRotateRounds)
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		servers := providerdtest.StartFleet(t, "", 1)
		rotate(t, servers, nil, rounds)
		providerdtest.CheckIntegrity(t, filepath.Join(servers.Dir, "data", "providerd.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		cluster := postgrestest.NewCluster(t)
		rotate(t, providerdtest.StartFleet(t, cluster.CreateDatabase(t), 3), cluster, rounds)
	})
}

func rotate(t *testing.T, servers *providerdtest.Fleet, cluster *postgrestest.Cluster, rounds int) {
	t.Helper()
	r := &rotating{Fleet: servers, cluster: cluster, made: providerdtest.NewJournal(), took: time.Second}
	pace := time.NewTicker(createInterval)
	defer pace.Stop()
	load := r.made.Load(4, "load", func(name string) (providerdtest.Record, error) {
		<-pace.C
		return r.persist(name)
	})
	defer load.Stop()
	r.made.WaitForMore(t, createsARound)
	// A replay after a rotation makes its server read the new keys, which must not be what creates rely on.
	replays := providerdtest.StartLoad(1, func(int, int) bool {
		<-pace.C
		return r.replay(t)
	})
	defer replays.Stop()
	for round := 0; round < rounds && !t.Failed(); round++ {
		r.made.WaitForMore(t, createsARound)
		if round%backupEvery == 0 {
			r.keepBackup(t, round)
		}
		r.round(t)
		pace.Reset(max(createInterval, r.took/createsARound))
		if round%backupEvery == replacedAfter {
			r.replaceMasterKey(t)
		}
	}
	load.Stop()
	replays.Stop()
	r.Stop(t)
	for _, kept := range r.backups {
		r.restoreKept(t, kept)
	}
	// Nor did a refused backup replace the database.
	r.made.Compare(t, r.Stored(t, r.URL))
	t.Logf("%d rounds in %v, kills of commands %d, of servers %d, replays %d, restored backups %d",
		rounds, time.Since(r.made.Started).Round(time.Second), r.kills, rounds, r.replayed.Load(), len(r.backups))
	if refused := r.refused.Load(); refused > 0 {
		t.Errorf("%d creates were refused", refused)
	}
}

// round rotates the key and reseals all secrets, after an attempt to do so was killed, and while a server is killed.
func (r *rotating) round(t *testing.T) {
	t.Helper()
	pause := rand.N(2 * r.took)
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		<-time.After(pause)
		r.Restart(t, rand.IntN(len(r.Replicas)), func() {})
	})
	r.kill(t, "key", "rotate")
	r.kill(t, "key", "reseal")
	begun := time.Now()
	r.RunCommand(t, "key", "rotate")
	r.RunCommand(t, "key", "reseal")
	r.took = time.Since(begun)
	keyID(t, r.Fleet, "data")
}

// kill kills a command at a random moment, unless it has ended.
func (r *rotating) kill(t *testing.T, arguments ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rand.N(r.took))
	defer cancel()
	if output, err := r.Command(ctx, arguments...).CombinedOutput(); ctx.Err() != nil {
		r.kills++
	} else if err != nil {
		t.Errorf("%v: %v: %s", arguments, err, output)
	}
}

// keyID returns the id of the only key of a kind.
func keyID(t *testing.T, f *providerdtest.Fleet, kind string) string {
	t.Helper()
	output := f.RunCommand(t, "key", "list")
	found := regexp.MustCompile(`(?m)^`+kind+` +([0-9]+) `).FindAllStringSubmatch(output, -1)
	if len(found) != 1 {
		t.Fatalf("there are %d %s keys, want 1: %s", len(found), kind, output)
	}
	return found[0][1]
}

// persist sends a create, and repeats it if its server is killed.
func (r *rotating) persist(name string) (record providerdtest.Record, err error) {
	replica := int(name[len(name)-1])
	err = processtest.Poll(func() error {
		status, created, err := r.Create(replica%len(r.Replicas), name, "")
		if err == nil && status != http.StatusCreated {
			r.refused.Add(1)
		}
		replica++
		record, err = providerdtest.ErrorUnlessCreated(status, created, err)
		return err
	})
	return record, err
}

// replay repeats a create, whose secret must be unchanged.
func (r *rotating) replay(t *testing.T) bool {
	before := r.made.Any()
	again, err := r.persist(before.Name)
	if err != nil || again != before {
		t.Errorf("replay of %s: provider %d, was %d, %v", before.Name, again.PK, before.PK, err)
	}
	r.replayed.Add(1)
	return true
}

// keepBackup makes a backup and keeps the keyset.
func (r *rotating) keepBackup(t *testing.T, round int) {
	dir := filepath.Dir(r.Keyset())
	kept := keptBackup{
		path: filepath.Join(dir, fmt.Sprintf("older-%d", round)), keyset: filepath.Join(dir, fmt.Sprintf("older-%d.json", round)),
		masterID: keyID(t, r.Fleet, "master"), records: r.made.Acknowledged(),
	}
	if r.cluster == nil {
		r.RunCommand(t, "backup", kept.path)
	} else {
		providerdtest.Run(t, postgrestest.Binary(t, "pg_dump"), "--format=custom", "--file="+kept.path, r.URL)
	}
	providerdtest.Run(t, "cp", "--preserve=mode", r.Keyset(), kept.keyset)
	r.backups = append(r.backups, kept)
}

// replaceMasterKey replaces the master key. The last backup, from before rotations, still opens with the keyset.
func (r *rotating) replaceMasterKey(t *testing.T) {
	last := r.backups[len(r.backups)-1]
	providerdtest.CheckIncludes(t, r.restored(t, last.path, r.Keyset()), last.records)
	next := r.Keyset() + ".next"
	r.RunCommand(t, "key", "create", "--keyset", next, "--add", r.Keyset())
	processtest.Must(t, os.Rename(next, r.Keyset()))
	r.kill(t, "key", "rewrap")
	r.RunCommand(t, "key", "rewrap")
	r.RunCommand(t, "key", "create", "--keyset", next, "--drop", r.Keyset())
	processtest.Must(t, os.Rename(next, r.Keyset()))
	if id := keyID(t, r.Fleet, "master"); id == last.masterID {
		t.Errorf("the master key is still %s", id)
	}
}

// restoreKept restores a backup with the keyset of its time. The last keyset is refused unless it is that.
func (r *rotating) restoreKept(t *testing.T, kept keptBackup) {
	if keyID(t, r.Fleet, "master") != kept.masterID {
		command := r.Command(t.Context(), "restore", kept.path, "--replace")
		if r.cluster != nil {
			command = r.Command(t.Context(), "PROVIDERD_DATABASE="+r.loaded(t, kept.path), "provider", "list")
		}
		providerdtest.ExpectExit(t, command, providerdtest.ExitFailed, "keyset cannot be used: it lacks master key "+kept.masterID+",")
	}
	providerdtest.CheckIncludes(t, r.restored(t, kept.path, kept.keyset), kept.records)
}

// restored restores a backup elsewhere, with a keyset, and returns its records.
func (r *rotating) restored(t *testing.T, backup, keyset string) []providerdtest.Record {
	t.Helper()
	if r.cluster != nil {
		return providerdtest.StoredAt(t, r.loaded(t, backup), keyset)
	}
	dir := t.TempDir()
	providerdtest.RunShell(t, dir, "mkdir --mode=700 data; cp --preserve=mode "+keyset+" data/keyset.json; providerd restore "+backup)
	return providerdtest.Stored(t, dir)
}

// loaded returns the URL of a new PostgreSQL database with the content of a backup.
func (r *rotating) loaded(t *testing.T, backup string) (url string) {
	t.Helper()
	url = r.cluster.CreateDatabase(t)
	providerdtest.Run(t, postgrestest.Binary(t, "pg_restore"), "--exit-on-error", "--dbname="+url, backup)
	return url
}

// TestMasterKeyIsReplacedUnderLoad replaces the master key of three replicas, each with a keyset file of its own, as on
// machines of their own. No create is refused.
func TestMasterKeyIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	const replacements, creates = 3, 100
	f, journal := providerdtest.StartFleet(t, postgrestest.NewCluster(t).CreateDatabase(t), 1), providerdtest.NewJournal()
	for range 2 {
		dir := t.TempDir()
		providerdtest.Run(t, "cp", "--archive", filepath.Dir(f.Keyset()), dir)
		replica := providerdtest.MustStart(t, providerdtest.ServeCommand(t.Context(), dir, f.Environment()...))
		f.Replicas = append(f.Replicas, replica)
	}
	// The first machine, which has the file, is the last that uses it.
	distribute := func(file string) {
		for _, number := range []int{1, 2, 0} {
			const replace = "cp --preserve=mode %s %s/next.json; mv %[2]s/next.json %[2]s/keyset.json"
			providerdtest.RunShell(t, f.Dir, fmt.Sprintf(replace, file, filepath.Join(f.Replicas[number].Dir, "data")))
		}
		processtest.Must(t, os.Remove(filepath.Join(f.Dir, file)))
	}
	load := journal.Load(2*len(f.Replicas), "load", func(name string) (providerdtest.Record, error) {
		caller := strings.Split(name, "-")[1]
		return providerdtest.ErrorUnlessCreated(f.Create(int(caller[0])%len(f.Replicas), name, ""))
	})
	defer load.Stop()
	used := map[string]bool{keyID(t, f, "master"): true}
	for range replacements {
		f.RunCommand(t, "key", "create", "--keyset", "both.json", "--add", "data/keyset.json")
		distribute("both.json")
		journal.WaitForMore(t, creates)
		f.RunCommand(t, "key", "rewrap")
		journal.WaitForMore(t, creates)
		f.RunCommand(t, "key", "create", "--keyset", "new.json", "--drop", "data/keyset.json")
		distribute("new.json")
		for _, replica := range f.Replicas {
			replica.ExpectReadiness(t, "ready")
		}
		journal.WaitForMore(t, creates)
		used[keyID(t, f, "master")] = true
	}
	load.Stop()
	if len(used) != replacements+1 {
		t.Errorf("the master keys were %v, want %d", used, replacements+1)
	}
	journal.Compare(t, providerdtest.StoredAt(t, f.URL, filepath.Join(f.Replicas[2].Dir, "data", "keyset.json")))
}
