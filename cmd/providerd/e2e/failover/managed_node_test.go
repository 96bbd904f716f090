//go:build proof

package failover_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// managedNode is a PostgreSQL server and the Patroni that manages it.
type managedNode struct {
	*postgrestest.Server
	name, password string
	// address and rest are the addresses of PostgreSQL and of Patroni's REST API.
	address, rest string
}

// patroniSettings are the settings of a node. The times, in seconds, are nearly as low as Patroni's documentation
// allows, with some room for a busy machine.
const patroniSettings = `scope: providerd
name: NAME
restapi: {listen: "REST", connect_address: "REST"}
etcd: {host: "ETCD"}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 5
    synchronous_mode: true
    synchronous_mode_strict: true
    postgresql:
      use_pg_rewind: true
      parameters: {max_connections: 200, wal_keep_size: 512MB}
  initdb: [encoding: UTF8, locale: C.UTF-8, data-checksums, no-sync]
postgresql:
  listen: "ADDRESS"
  connect_address: "ADDRESS"
  data_dir: DIR/data
  bin_dir: BINARIES
  pgpass: DIR/pgpass
  authentication:
    superuser: &user {username: postgres, password: "PASSWORD"}
    replication: *user
    rewind: *user
  parameters: {unix_socket_directories: "", dynamic_shared_memory_type: mmap}
  pg_hba:
    - host all postgres 127.0.0.1/32 scram-sha-256
    - host replication postgres 127.0.0.1/32 scram-sha-256
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
`

// newManagedNode returns a node that is not yet started.
func newManagedNode(t *testing.T, name, password, etcd string) *managedNode {
	t.Helper()
	n := &managedNode{
		Server: postgrestest.NewServer(t), name: name, password: password,
		address: processtest.Local(processtest.FreePort(t)), rest: processtest.Local(processtest.FreePort(t)),
	}
	n.Write("patroni.yml", strings.NewReplacer("NAME", name, "REST", n.rest, "ETCD", etcd, "ADDRESS", n.address,
		"DIR", n.Path(""), "BINARIES", filepath.Dir(postgrestest.Binary(t, "postgres")), "PASSWORD", password).Replace(patroniSettings))
	// Before the directory is removed.
	t.Cleanup(n.Kill)
	return n
}

func (n *managedNode) url() string {
	return postgrestest.DatabaseURL(n.password, n.address, patroniDatabase)
}

// killPostgreSQL sends SIGKILL to all processes of PostgreSQL. Patroni keeps running.
func (n *managedNode) killPostgreSQL() { n.signalPostgreSQL(syscall.SIGKILL) }

// Kill sends SIGKILL to Patroni and PostgreSQL, and returns when none of their processes is left.
func (n *managedNode) Kill() {
	if n.IsRunning() {
		// While it is stopped, Patroni cannot restart PostgreSQL.
		n.Freeze()
		n.killPostgreSQL()
		n.Server.Kill()
	}
}

// Freeze sends SIGSTOP to Patroni and PostgreSQL.
func (n *managedNode) Freeze() {
	n.freezePatroni()
	n.signalPostgreSQL(syscall.SIGSTOP)
}

// freezePatroni sends SIGSTOP to Patroni. PostgreSQL keeps running, and stays writable if it is the primary.
func (n *managedNode) freezePatroni() { n.Server.Freeze() }

// Thaw resumes Patroni and PostgreSQL. It does nothing if they do not run.
func (n *managedNode) Thaw() {
	n.signalPostgreSQL(syscall.SIGCONT)
	n.Server.Thaw()
}

// signalPostgreSQL sends a signal to all processes of PostgreSQL, which are not children of Patroni. The PID file of a
// killed server is stale.
func (n *managedNode) signalPostgreSQL(signal syscall.Signal) {
	pid := n.PIDFile()[0]
	dir, _ := os.Readlink(filepath.Join("/proc", pid, "cwd"))
	if id, err := strconv.Atoi(pid); err == nil && dir == n.Path("data") {
		postgrestest.SignalTree(id, signal)
	}
}
