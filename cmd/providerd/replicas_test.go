//go:build slow

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest"
)

// fleet is some replicas over one PostgreSQL database, and a caller.
type fleet struct {
	// program is the path of what is run; that of the tests themselves in most of them.
	program, folder, url string
	replicas             []*process
	client               *http.Client
}

// startFleet starts replicas, of which each may be the one that makes the schema.
func startFleet(t *testing.T, count int) *fleet {
	t.Helper()
	return startFleetOver(t, count, postgrestest.NewCluster(t).CreateDatabase(t))
}

// startFleetOver is startFleet over the database of a URL.
func startFleetOver(t *testing.T, count int, url string) *fleet {
	t.Helper()
	f := &fleet{
		program: os.Args[0], folder: t.TempDir(), url: url, replicas: make([]*process, count),
		client: contracttest.Client(t),
	}
	f.begin(t)
	return f
}

// begin starts the replicas at a time on an empty database, and makes a token.
func (f *fleet) begin(t *testing.T) {
	t.Helper()
	create := newCommand(t.Context(), f.folder, "key", "create", "--keyset", "keyset.json")
	create.Path = f.program
	if output, err := create.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	var group sync.WaitGroup
	for i := range f.replicas {
		group.Go(func() { f.start(t, i) })
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	command := newCommand(t.Context(), f.folder, "token", "create", "--name", "ci",
		"--allow", "providers_oauth2_create", "--allow", "providers_workspace_directory_create")
	command.Path, command.Env = f.program, append(os.Environ(), f.environment()...)
	token, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.folder, "data", initialTokenFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, token, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (f *fleet) environment() []string {
	return []string{"PROVIDERD_DATABASE=" + f.url, "PROVIDERD_KEYSET=keyset.json"}
}

func (f *fleet) start(t *testing.T, number int) {
	t.Helper()
	var err error
	if f.replicas[number], err = startProgram(t.Context(), f.program, f.folder, f.environment()); err != nil {
		t.Errorf("replica %d: %v", number, err)
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

// create sends a create with a key to one of the replicas.
func (f *fleet) create(number int, key, clientID string) (status int, pk int32, err error) {
	body := fmt.Sprintf(`{"name":%q,"client_id":%q,"authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}`, key, clientID)
	status, text, err := f.replicas[number].postWithKey(f.client, f.folder, oauth2Path, body, key)
	if err != nil || status != http.StatusCreated {
		return status, 0, err
	}
	var record struct{ PK int32 }
	err = json.Unmarshal([]byte(text), &record)
	return status, record.PK, err
}

// readiness asks a replica whether it is ready.
func (f *fleet) readiness(number int) (status int, err error) {
	response, err := f.client.Get(f.replicas[number].url + "/readyz")
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// awaitCreate sends a create to the first replica until it is stored.
func (f *fleet) awaitCreate(t *testing.T, key string) {
	t.Helper()
	waitUntil(t, "a create is stored", func() bool {
		status, _, err := f.create(0, key, key)
		return err == nil && status == http.StatusCreated
	})
}

// records counts what is stored by name.
func (f *fleet) records(t *testing.T) map[string]int {
	t.Helper()
	database, err := storetest.CreatePostgres(t.Context(), f.url, filepath.Join(f.folder, "keyset.json"))
	if err != nil {
		t.Fatal(err)
	}
	return countNames(t, database)
}

// Tries with one key at a time, at different replicas, make one record; different keys that claim one client_id make
// one record, too.
func TestReplicasRace(t *testing.T) {
	t.Parallel()
	const replicas, keys, tries = 3, 40, 6
	f := startFleet(t, replicas)
	var group sync.WaitGroup
	for i := range keys {
		pks, claims := make([]int32, tries), make([]int, tries)
		var race sync.WaitGroup
		for try := range tries {
			race.Go(func() {
				status, pk, err := f.create(try%replicas, fmt.Sprint("key-", i), fmt.Sprint("of-key-", i))
				if err != nil || status != http.StatusCreated {
					t.Errorf("key %d: status is %d, %v", i, status, err)
				}
				pks[try] = pk
			})
			race.Go(func() {
				status, _, err := f.create(try%replicas, fmt.Sprint("claim-", i, "-", try), fmt.Sprint("claimed-", i))
				if err != nil {
					t.Error(err)
				}
				claims[try] = status
			})
		}
		group.Go(func() {
			race.Wait()
			won := 0
			for try := range tries {
				if pks[try] != pks[0] {
					t.Errorf("key %d: pks are %v", i, pks)
				}
				switch claims[try] {
				case http.StatusCreated:
					won++
				case http.StatusConflict:
				default:
					t.Errorf("claim of %d: status is %d", i, claims[try])
				}
			}
			if won != 1 {
				t.Errorf("client_id %d: %d creates won", i, won)
			}
		})
	}
	group.Wait()
	if found := f.records(t); len(found) != 2*keys {
		t.Errorf("%d names are stored, want %d", len(found), 2*keys)
	}
	f.stop(t)
}

// Replicas die in turn under load. Whoever asks another one with the same key gets the one record.
func TestReplicasDieUnderLoad(t *testing.T) {
	t.Parallel()
	const replicas, rounds, callers, creates = 3, 6, 12, 40
	f := startFleet(t, replicas)
	acknowledged := map[string]int32{}
	var mutex sync.Mutex
	for round := range rounds {
		victim := round % replicas
		var group sync.WaitGroup
		for caller := range callers {
			group.Go(func() {
				for i := range creates {
					if caller == 0 && i == creates/2 {
						if err := f.replicas[victim].kill(); err != nil {
							t.Error(err)
						}
					}
					key := fmt.Sprint(round, "-", caller, "-", i)
					pk := f.persist(t, caller+i, key)
					mutex.Lock()
					acknowledged[key] = pk
					mutex.Unlock()
				}
			})
		}
		group.Wait()
		f.start(t, victim)
	}
	found := f.records(t)
	for key, pk := range acknowledged {
		if found[key] != 1 {
			t.Errorf("%s is stored %d times", key, found[key])
		}
		if again := f.persist(t, 0, key); again != pk {
			t.Errorf("%s: pk is %d, was %d", key, again, pk)
		}
	}
	if len(found) != len(acknowledged) {
		t.Errorf("%d names are stored, %d were acknowledged", len(found), len(acknowledged))
	}
	f.stop(t)
}

// persist asks one replica after the other until one acknowledges.
func (f *fleet) persist(t *testing.T, first int, key string) int32 {
	t.Helper()
	var refusals []string
	for try := range 3 * len(f.replicas) {
		status, pk, err := f.create((first+try)%len(f.replicas), key, key)
		if err == nil && status == http.StatusCreated {
			return pk
		}
		refusals = append(refusals, fmt.Sprint(status, err))
	}
	t.Errorf("%s: %s", key, strings.Join(refusals, ", "))
	return 0
}
