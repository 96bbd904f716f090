package providerdtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest"
)

// Fleet is a set of replicas over one PostgreSQL database, and a client.
type Fleet struct {
	// Program is the path of the program, in most tests the test binary itself.
	Program, Dir, URL string
	Client            *http.Client
	// mutex guards Replicas, which are replaced while clients use them.
	mutex    sync.RWMutex
	Replicas []*Server
}

// StartFleet starts replicas over the database at url, any of which may create the schema. Replicas still running when
// the test ends are killed.
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

// begin starts the replicas concurrently, and creates a token.
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

// RunCommand runs a command of program on the database of the replicas, and returns its standard output.
func (f *Fleet) RunCommand(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	command := f.Command(t.Context(), arguments...)
	command.Path = program
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v", arguments, err)
	}
	return string(output)
}

// Command returns a command of this program on the database of the replicas.
func (f *Fleet) Command(ctx context.Context, arguments ...string) *exec.Cmd {
	command := Command(ctx, f.Dir, arguments...)
	command.Env = append(os.Environ(), f.environment()...)
	return command
}

func (f *Fleet) environment() []string {
	return []string{"PROVIDERD_DATABASE=" + f.URL, "PROVIDERD_KEYSET=keyset.json"}
}

// Start starts a replica that replaces an ended one.
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

// Replica returns a replica, which may have ended.
func (f *Fleet) Replica(number int) *Server {
	f.mutex.RLock()
	defer f.mutex.RUnlock()
	return f.Replicas[number]
}

// Restart kills a replica, calls between, and starts it again.
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

// Stop stops all replicas, each of which must exit with status 0.
func (f *Fleet) Stop(t *testing.T) {
	t.Helper()
	for i, replica := range f.Replicas {
		if err := replica.Stop(); err != nil {
			t.Errorf("replica %d: %v: %s", i, err, replica.Stderr)
		}
	}
}

// Create sends a create, with its name as idempotency key, to a replica.
func (f *Fleet) Create(number int, name, clientID string) (status int, record Record, err error) {
	return f.Replica(number).CreateNamed(f.Client, name, clientID)
}

// Readiness returns the status of /readyz of a replica.
func (f *Fleet) Readiness(number int) (status int, err error) {
	response, err := f.Client.Get(f.Replica(number).URL + "/readyz")
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// Stored returns the records in the database at url, which has the keyset of the fleet.
func (f *Fleet) Stored(t *testing.T, url string) []Record {
	t.Helper()
	database, err := storetest.CreatePostgres(t.Context(), url, filepath.Join(f.Dir, "keyset.json"))
	if err != nil {
		t.Fatal(err)
	}
	return readAll(t, database)
}

// CreateWithRetry sends a create to one replica after the other until one acknowledges it.
func (f *Fleet) CreateWithRetry(name string) (Record, error) {
	var refusals []error
	first := rand.IntN(len(f.Replicas))
	for try := range 3 * len(f.Replicas) {
		record, err := ErrorUnlessCreated(f.Create((first+try)%len(f.Replicas), name, ""))
		if err == nil {
			return record, nil
		}
		refusals = append(refusals, err)
	}
	return Record{}, errors.Join(refusals...)
}
