package providerdtest

import (
	"context"
	"errors"
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

// StartFleet starts replicas over the database at url, any of which may create the schema, and creates a token.
func StartFleet(t *testing.T, program, url string, count int) *Fleet {
	t.Helper()
	f := &Fleet{
		Program: program, Dir: t.TempDir(), URL: url, Client: contracttest.Client(t), Replicas: make([]*Server, count),
	}
	f.RunCommand(t, program, "key", "create", "--keyset", "keyset.json")
	var group sync.WaitGroup
	for i := range f.Replicas {
		group.Go(func() { f.Start(t, i) })
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		for i, replica := range f.Replicas {
			_ = replica.Child.Kill()
			if lines := strings.Split(replica.Stderr.String(), "\n"); t.Failed() {
				t.Logf("replica %d: %s", i, strings.Join(lines[max(0, len(lines)-12):], "\n"))
			}
		}
	})
	token := f.RunCommand(t, program, "token", "create", "--name", "ci",
		"--allow", "providers_oauth2_create", "--allow", "providers_workspace_directory_create")
	data := filepath.Join(f.Dir, "data")
	err := errors.Join(os.Mkdir(data, 0o700), os.WriteFile(filepath.Join(data, "initial-token"), []byte(token), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return f
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

// Command returns a command of the test binary on the database of the replicas.
func (f *Fleet) Command(ctx context.Context, arguments ...string) *exec.Cmd {
	return Command(ctx, f.Dir, append(f.environment(), arguments...)...)
}

func (f *Fleet) environment() []string {
	return []string{"PROVIDERD_DATABASE=" + f.URL, "PROVIDERD_KEYSET=keyset.json"}
}

// Start starts a replica that replaces an ended one.
func (f *Fleet) Start(t *testing.T, number int) {
	t.Helper()
	command := ServeCommand(t.Context(), f.Dir, f.environment()...)
	command.Path = f.Program
	replica, err := Start(command)
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
	f.Replica(number).Kill(t)
	between()
	if f.Start(t, number); t.Failed() {
		t.FailNow()
	}
}

// Stop stops all replicas, each of which must exit with status 0.
func (f *Fleet) Stop(t *testing.T) {
	t.Helper()
	for _, replica := range f.Replicas {
		replica.Stop(t)
	}
}

// Create sends a create, with its name as idempotency key, to a replica.
func (f *Fleet) Create(number int, name, clientID string) (status int, record Record, err error) {
	return f.Replica(number).CreateNamed(f.Client, name, clientID)
}

// Stored returns the records in the database at url, which has the keyset of the fleet.
func (f *Fleet) Stored(t *testing.T, url string) []Record {
	t.Helper()
	return StoredAt(t, url, filepath.Join(f.Dir, "keyset.json"))
}

// StoredAt returns the records in the PostgreSQL database at url, which has a keyset.
func StoredAt(t *testing.T, url, keyset string) []Record {
	t.Helper()
	database, err := storetest.CreatePostgres(t.Context(), url, keyset)
	if err != nil {
		t.Fatal(err)
	}
	return readAll(t, database)
}
