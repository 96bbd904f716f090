package providerdtest

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest"
)

// Fleet is some replicas over one PostgreSQL database, and a caller.
type Fleet struct {
	// Program is the path of what is run; that of the tests themselves in most of them.
	Program, Dir, URL string
	Client            *http.Client
	// Mutex guards the replicas, which are exchanged while they are called.
	mutex    sync.RWMutex
	Replicas []*Server
}

// StartFleet starts replicas over the database of a URL, of which each may be the one that makes the schema. Those that
// the test does not stop are killed when it ends.
func StartFleet(t *testing.T, program, url string, count int) *Fleet {
	t.Helper()
	f := &Fleet{
		Program: program, Dir: t.TempDir(), URL: url, Client: contracttest.Client(t), Replicas: make([]*Server, count),
	}
	t.Cleanup(func() {
		for i, replica := range f.Replicas {
			if replica == nil {
				continue
			}
			_ = replica.Kill()
			if t.Failed() {
				lines := strings.Split(replica.Stderr.String(), "\n")
				t.Logf("replica %d: %s", i, strings.Join(lines[max(0, len(lines)-12):], "\n"))
			}
		}
	})
	f.begin(t)
	return f
}

// begin starts the replicas at a time on an empty database, and makes a token.
func (f *Fleet) begin(t *testing.T) {
	t.Helper()
	RunProgram(t, f.Program, f.Dir, "key", "create", "--keyset", "keyset.json")
	var group sync.WaitGroup
	for i := range f.Replicas {
		group.Go(func() { f.Start(t, i) })
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	token := f.RunCommand(t, f.Program, "token", "create", "--name", "ci",
		"--allow", "providers_oauth2_create", "--allow", "providers_workspace_directory_create")
	path := filepath.Join(f.Dir, "data", "initial-token")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
}

// RunCommand runs a command of a program over the database of the replicas, and returns what it prints.
func (f *Fleet) RunCommand(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	command := Command(t.Context(), f.Dir, arguments...)
	command.Path, command.Env = program, append(os.Environ(), f.environment()...)
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v", arguments, err)
	}
	return string(output)
}

func (f *Fleet) environment() []string {
	return []string{"PROVIDERD_DATABASE=" + f.URL, "PROVIDERD_KEYSET=keyset.json"}
}

// Start starts a replica in the place of one that has ended.
func (f *Fleet) Start(t *testing.T, number int) {
	t.Helper()
	replica, err := StartProgram(t.Context(), f.Program, f.Dir, f.environment())
	if err != nil {
		t.Errorf("replica %d: %v", number, err)
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.Replicas[number] = replica
}

// Replica returns one that may be dead.
func (f *Fleet) Replica(number int) *Server {
	f.mutex.RLock()
	defer f.mutex.RUnlock()
	return f.Replicas[number]
}

// Restart kills a replica, and starts it again after something. Requests to it are refused in between.
func (f *Fleet) Restart(t *testing.T, number int, between func()) {
	t.Helper()
	if err := f.Replica(number).Kill(); err != nil {
		t.Fatal(err)
	}
	between()
	f.Start(t, number)
	if t.Failed() {
		t.FailNow()
	}
}

// Stop stops all replicas, each of which must end well.
func (f *Fleet) Stop(t *testing.T) {
	t.Helper()
	for i, replica := range f.Replicas {
		if err := replica.Stop(); err != nil {
			t.Errorf("replica %d: %v: %s", i, err, replica.Stderr)
		}
	}
}

// Create sends a create with its name as the key to one of the replicas.
func (f *Fleet) Create(number int, name, clientID string) (status int, one Record, err error) {
	return f.Replica(number).CreateNamed(f.Client, name, clientID)
}

// Readiness asks a replica whether it is ready.
func (f *Fleet) Readiness(number int) (status int, err error) {
	response, err := f.Client.Get(f.Replica(number).URL + "/readyz")
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// Stored returns what the database of a URL has, of which the fleet has the keyset.
func (f *Fleet) Stored(t *testing.T, url string) []Record {
	t.Helper()
	database, err := storetest.CreatePostgres(t.Context(), url, filepath.Join(f.Dir, "keyset.json"))
	if err != nil {
		t.Fatal(err)
	}
	return readAll(t, database)
}

// CreateWithRetry asks one replica after the other until one acknowledges.
func (f *Fleet) CreateWithRetry(name string) (Record, error) {
	var refusals []error
	first := rand.IntN(len(f.Replicas))
	for try := range 3 * len(f.Replicas) {
		one, err := ErrorUnlessCreated(f.Create((first+try)%len(f.Replicas), name, ""))
		if err == nil {
			return one, nil
		}
		refusals = append(refusals, err)
	}
	return Record{}, errors.Join(refusals...)
}
