//go:build slow

package command

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest"
)

// fleet is some replicas over one PostgreSQL database, and a caller.
type fleet struct {
	// program is the path of what is run; that of the tests themselves in most of them.
	program, folder, url string
	client               *http.Client
	// mutex guards the replicas, which are exchanged while they are called.
	mutex    sync.RWMutex
	replicas []*process
}

// startFleet starts replicas over the database of a URL, of which each may be the one that makes the schema. Those that
// the test does not stop are killed when it ends.
func startFleet(t *testing.T, program, url string, count int) *fleet {
	t.Helper()
	f := &fleet{
		program: program, folder: t.TempDir(), url: url, client: contracttest.Client(t), replicas: make([]*process, count),
	}
	t.Cleanup(func() {
		for i, replica := range f.replicas {
			if replica == nil {
				continue
			}
			_ = replica.kill()
			if t.Failed() {
				lines := strings.Split(replica.stderr.String(), "\n")
				t.Logf("replica %d: %s", i, strings.Join(lines[max(0, len(lines)-12):], "\n"))
			}
		}
	})
	f.begin(t)
	return f
}

// begin starts the replicas at a time on an empty database, and makes a token.
func (f *fleet) begin(t *testing.T) {
	t.Helper()
	operateWith(t, f.program, f.folder, "key", "create", "--keyset", "keyset.json")
	var group sync.WaitGroup
	for i := range f.replicas {
		group.Go(func() { f.start(t, i) })
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	token := f.operate(t, f.program, "token", "create", "--name", "ci",
		"--allow", "providers_oauth2_create", "--allow", "providers_workspace_directory_create")
	path := filepath.Join(f.folder, "data", initialTokenFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
}

// operate runs a command of a program over the database of the replicas, and returns what it prints.
func (f *fleet) operate(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	command := newCommand(t.Context(), f.folder, arguments...)
	command.Path, command.Env = program, append(os.Environ(), f.environment()...)
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v", arguments, err)
	}
	return string(output)
}

func (f *fleet) environment() []string {
	return []string{"PROVIDERD_DATABASE=" + f.url, "PROVIDERD_KEYSET=keyset.json"}
}

func (f *fleet) start(t *testing.T, number int) {
	t.Helper()
	replica, err := startProgram(t.Context(), f.program, f.folder, f.environment())
	if err != nil {
		t.Errorf("replica %d: %v", number, err)
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.replicas[number] = replica
}

// replica returns one that may be dead.
func (f *fleet) replica(number int) *process {
	f.mutex.RLock()
	defer f.mutex.RUnlock()
	return f.replicas[number]
}

// restart kills a replica, and starts it again after something. Requests to it are refused in between.
func (f *fleet) restart(t *testing.T, number int, between func()) {
	t.Helper()
	if err := f.replica(number).kill(); err != nil {
		t.Fatal(err)
	}
	between()
	f.start(t, number)
	if t.Failed() {
		t.FailNow()
	}
}

func (f *fleet) stop(t *testing.T) {
	t.Helper()
	for i, replica := range f.replicas {
		if err := replica.stop(); err != nil {
			t.Errorf("replica %d: %v: %s", i, err, replica.stderr)
		}
	}
}

// create sends a create with its name as the key to one of the replicas.
func (f *fleet) create(number int, name, clientID string) (status int, one created, err error) {
	return f.replica(number).create(f.client, f.folder, name, clientID)
}

// readiness asks a replica whether it is ready.
func (f *fleet) readiness(number int) (status int, err error) {
	response, err := f.client.Get(f.replica(number).url + "/readyz")
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// stored returns what the database of a URL has, of which the fleet has the keyset.
func (f *fleet) stored(t *testing.T, url string) []created {
	t.Helper()
	database, err := storetest.CreatePostgres(t.Context(), url, filepath.Join(f.folder, "keyset.json"))
	if err != nil {
		t.Fatal(err)
	}
	return readAll(t, database)
}

// persist asks one replica after the other until one acknowledges.
func (f *fleet) persist(name string) (created, error) {
	var refusals []error
	first := rand.IntN(len(f.replicas))
	for try := range 3 * len(f.replicas) {
		one, err := onlyCreated(f.create((first+try)%len(f.replicas), name, ""))
		if err == nil {
			return one, nil
		}
		refusals = append(refusals, err)
	}
	return created{}, errors.Join(refusals...)
}

// Tries with one key at a time, at different replicas, make one record; different keys that claim one client_id make
// one record, too.
func TestReplicasRace(t *testing.T) {
	t.Parallel()
	const replicas, keys, tries = 3, 40, 6
	f := startFleet(t, os.Args[0], postgrestest.NewCluster(t).CreateDatabase(t), replicas)
	made := newJournal()
	var group sync.WaitGroup
	for i := range keys {
		for try := range tries {
			group.Go(func() {
				one, err := onlyCreated(f.create(try%replicas, fmt.Sprint("key-", i), ""))
				if err != nil {
					t.Errorf("key %d: %v", i, err)
				}
				made.acknowledge(one, time.Now())
			})
			group.Go(func() {
				status, one, err := f.create(try%replicas, fmt.Sprint("claim-", i, "-", try), fmt.Sprint("claimed-", i))
				switch {
				case err == nil && status == http.StatusCreated:
					made.acknowledge(one, time.Now())
				case err != nil || status != http.StatusConflict:
					t.Errorf("claim of %d: status is %d, %v", i, status, err)
				}
			})
		}
	}
	group.Wait()
	if len(made.creates) != 2*keys {
		t.Errorf("%d names are acknowledged, want %d", len(made.creates), 2*keys)
	}
	made.compare(t, f.stored(t, f.url))
	f.stop(t)
}

// Replicas die in turn under load. Whoever asks another one with the same key gets the one record.
func TestReplicasDieUnderLoad(t *testing.T) {
	t.Parallel()
	const replicas, rounds, callers, creates = 3, 6, 12, 200
	f, made := startFleet(t, os.Args[0], postgrestest.NewCluster(t).CreateDatabase(t), replicas), newJournal()
	load := made.load(callers, "k", f.persist)
	for round := range rounds {
		made.await(t, creates)
		f.restart(t, round%replicas, func() { made.await(t, creates) })
	}
	load.end()
	made.compare(t, f.stored(t, f.url))
	for name, one := range made.creates {
		if again, err := f.persist(name); err != nil || again != one {
			t.Errorf("%s: is %v, was %v, %v", name, again, one, err)
		}
	}
	f.stop(t)
}
