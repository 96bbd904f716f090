//go:build slow

package commands_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
)

// deployment is a database with its servers.
type deployment interface {
	// command returns a command on the database.
	command(ctx context.Context, arguments ...string) *exec.Cmd
	// keyset returns the path of the keyset file.
	keyset() string
	// create sends a create to a server. A second try is sent to another one, or after a restart.
	create(try int, name string) (status int, record providerdtest.Record, err error)
	// restart kills a server and starts it again.
	restart(t *testing.T)
	// backUp makes a backup at a path.
	backUp(t *testing.T, path string)
	// restore restores a backup elsewhere, and returns its records.
	restore(t *testing.T, backup, keyset string) []providerdtest.Record
	// refuse restores a backup with the keyset of the deployment, which must fail, and returns the message.
	refuse(t *testing.T, backup string) string
	// end stops the servers and returns all records.
	end(t *testing.T) []providerdtest.Record
}

// sqliteServer is a server over a SQLite database.
type sqliteServer struct {
	dir    string
	client *http.Client
	// mutex guards the server, which must not be used while it is replaced.
	mutex  sync.RWMutex
	server *providerdtest.Server
}

func serveSQLite(t *testing.T) *sqliteServer {
	t.Helper()
	s := &sqliteServer{dir: t.TempDir(), client: contracttest.Client(t)}
	s.start(t)
	return s
}

func (s *sqliteServer) start(t *testing.T) {
	t.Helper()
	server, err := providerdtest.Start(providerdtest.ServeCommand(t.Context(), s.dir))
	if err != nil {
		t.Error(err)
		return
	}
	s.server = server
}

func (s *sqliteServer) command(ctx context.Context, arguments ...string) *exec.Cmd {
	return providerdtest.Command(ctx, s.dir, arguments...)
}

func (s *sqliteServer) keyset() string { return filepath.Join(s.dir, "data", "keyset.json") }

func (s *sqliteServer) create(_ int, name string) (status int, record providerdtest.Record, err error) {
	s.mutex.RLock()
	server := s.server
	s.mutex.RUnlock()
	return server.CreateNamed(s.client, name, "")
}

func (s *sqliteServer) restart(t *testing.T) {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.server.Kill(t)
	s.start(t)
}

func (s *sqliteServer) backUp(t *testing.T, path string) {
	t.Helper()
	providerdtest.RunCommand(t, s.dir, "backup", path)
}

func (s *sqliteServer) restore(t *testing.T, backup, keyset string) []providerdtest.Record {
	t.Helper()
	dir := newDirWithKeyset(t, keyset)
	providerdtest.RunCommand(t, dir, "restore", backup)
	return providerdtest.Stored(t, dir)
}

func newDirWithKeyset(t *testing.T, keyset string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	providerdtest.RunShell(t, dir, "mkdir --mode=700 data; cp --preserve=mode "+keyset+" data/keyset.json")
	return dir
}

// refuse also checks that the database in the place is not replaced.
func (s *sqliteServer) refuse(t *testing.T, backup string) string {
	t.Helper()
	dir := newDirWithKeyset(t, s.keyset())
	place := filepath.Join(dir, "data", "providerd.db")
	providerdtest.Run(t, "cp", "--preserve=mode", filepath.Join(s.dir, "data", "providerd.db"), place)
	before, err := os.ReadFile(place)
	if err != nil {
		t.Fatal(err)
	}
	output, failure := providerdtest.Command(t.Context(), dir, "restore", backup, "--replace").CombinedOutput()
	if after, err := os.ReadFile(place); failure == nil || err != nil || !bytes.Equal(after, before) {
		t.Errorf("restored without the master key: %v, %v", failure, err)
	}
	return string(output)
}

func (s *sqliteServer) end(t *testing.T) []providerdtest.Record {
	t.Helper()
	s.server.Stop(t)
	providerdtest.CheckIntegrity(t, filepath.Join(s.dir, "data", "providerd.db"))
	return providerdtest.Stored(t, s.dir)
}

// replicas are three servers over a PostgreSQL database.
type replicas struct {
	*providerdtest.Fleet
	cluster *postgrestest.Cluster
}

func serveReplicas(t *testing.T, cluster *postgrestest.Cluster) *replicas {
	t.Helper()
	return &replicas{providerdtest.StartFleet(t, os.Args[0], cluster.CreateDatabase(t), 3), cluster}
}

func (r *replicas) command(ctx context.Context, arguments ...string) *exec.Cmd {
	return r.Command(ctx, arguments...)
}

func (r *replicas) keyset() string { return filepath.Join(r.Dir, "keyset.json") }

func (r *replicas) create(try int, name string) (status int, record providerdtest.Record, err error) {
	first := int(name[len(name)-1])
	return r.Create((first+try)%len(r.Replicas), name, "")
}

func (r *replicas) restart(t *testing.T) {
	t.Helper()
	r.Restart(t, rand.IntN(len(r.Replicas)), func() {})
}

func (r *replicas) backUp(t *testing.T, path string) {
	t.Helper()
	providerdtest.Run(t, postgrestest.Binary(t, "pg_dump"), "--format=custom", "--file="+path, r.URL)
}

// restored returns the URL of a new database with the content of a backup.
func (r *replicas) restored(t *testing.T, backup string) (url string) {
	t.Helper()
	url = r.cluster.CreateDatabase(t)
	providerdtest.Run(t, postgrestest.Binary(t, "pg_restore"), "--exit-on-error", "--dbname="+url, backup)
	return url
}

func (r *replicas) restore(t *testing.T, backup, keyset string) []providerdtest.Record {
	t.Helper()
	return providerdtest.StoredAt(t, r.restored(t, backup), keyset)
}

func (r *replicas) refuse(t *testing.T, backup string) string {
	t.Helper()
	output, err := providerdtest.Command(t.Context(), r.Dir, "PROVIDERD_DATABASE="+r.restored(t, backup),
		"PROVIDERD_KEYSET=keyset.json", "provider", "list").CombinedOutput()
	if err == nil {
		t.Error("the restored database was opened without its master key")
	}
	return string(output)
}

func (r *replicas) end(t *testing.T) []providerdtest.Record {
	t.Helper()
	r.Stop(t)
	return r.Stored(t, r.URL)
}
