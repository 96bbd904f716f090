package providerdtest

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// Fleet is a set of replicas over one database, and a client.
type Fleet struct {
	// Program is the path of the program that replicas are started with, first the test binary itself. Dir has the
	// keyset and the initial token in data/. URL is that of the PostgreSQL database, or "" for SQLite.
	Program, Dir, URL string
	Client            *http.Client
	// mutex guards Replicas, which are replaced while clients use them.
	mutex    sync.RWMutex
	Replicas []*Server
}

// StartFleet starts replicas over the PostgreSQL database at url, any of which may create the schema, and creates the
// initial token. If url is "", it starts one server over a SQLite database.
func StartFleet(t *testing.T, url string, count int) *Fleet {
	t.Helper()
	f := &Fleet{
		Program: os.Args[0], Dir: t.TempDir(), URL: url, Client: contracttest.Client(t), Replicas: make([]*Server, count),
	}
	if url != "" {
		processtest.Must(t, os.Mkdir(filepath.Dir(f.Keyset()), 0o700))
		f.RunCommand(t, "key", "create")
	}
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
	if url != "" {
		token := f.RunCommand(t, "token", "create", "--quiet", "--name", "initial", "--allow", "all")
		processtest.Must(t, os.WriteFile(filepath.Join(f.Dir, "data", "initial-token"), []byte(token), 0o600))
	}
	return f
}

// Keyset returns the path of the keyset file.
func (f *Fleet) Keyset() string { return filepath.Join(f.Dir, "data", "keyset.json") }

// RunCommand runs a command of the test binary, which must succeed, and returns its output and messages.
func (f *Fleet) RunCommand(t *testing.T, words ...string) string {
	t.Helper()
	return processtest.Run(t, f.Command(t.Context(), words...))
}

// Command returns a command of the test binary on the database of the replicas, with further environment variables if
// words begins with them.
func (f *Fleet) Command(ctx context.Context, words ...string) *exec.Cmd {
	return Command(ctx, f.Dir, append(f.Environment(), words...)...)
}

// Environment returns the variables that select the database and the keyset.
func (f *Fleet) Environment() []string {
	if f.URL == "" {
		return nil
	}
	return []string{"PROVIDERD_DATABASE=" + f.URL, "PROVIDERD_KEYSET=data/keyset.json"}
}

// Start starts a replica that replaces an ended one.
func (f *Fleet) Start(t *testing.T, number int) {
	t.Helper()
	command := ServeCommand(t.Context(), f.Dir, f.Environment()...)
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

// Stored returns the records in the SQLite database or, so that it can be the primary alone, in the database at url.
func (f *Fleet) Stored(t *testing.T, url string) []Record {
	t.Helper()
	if f.URL == "" {
		return Stored(t, f.Dir)
	}
	return StoredAt(t, url, f.Keyset())
}

// StoredAt returns the records in the PostgreSQL database at url, which has a keyset.
func StoredAt(t *testing.T, url, keyset string) []Record {
	t.Helper()
	return readAll(t, processtest.Try(storetest.CreatePostgres(t.Context(), url, keyset)).Must(t))
}
