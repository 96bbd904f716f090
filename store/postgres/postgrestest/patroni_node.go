package postgrestest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// PatroniNode is a PostgreSQL server and the Patroni that manages it.
type PatroniNode struct {
	*server
	name, password string
	// address and rest are those of PostgreSQL and of Patroni's REST API.
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

// newPatroniNode returns a node that is not yet started.
func newPatroniNode(t testing.TB, name, password, etcd string) *PatroniNode {
	t.Helper()
	n := &PatroniNode{
		server: newServer(t), name: name, password: password,
		address: processtest.Local(processtest.FreePort(t)), rest: processtest.Local(processtest.FreePort(t)),
	}
	n.write("patroni.yml", strings.NewReplacer("NAME", name, "REST", n.rest, "ETCD", etcd, "ADDRESS", n.address,
		"DIR", n.dir, "BINARIES", filepath.Dir(binary(t, "postgres")), "PASSWORD", password).Replace(patroniSettings))
	// Before the directory is removed.
	t.Cleanup(n.Kill)
	return n
}

// URL returns the URL of a database on this node.
func (n *PatroniNode) URL(database string) string {
	return databaseURL(n.password, n.address, database)
}

// KillPostgreSQL sends SIGKILL to all processes of PostgreSQL. Patroni keeps running.
func (n *PatroniNode) KillPostgreSQL() { n.signalPostgreSQL(syscall.SIGKILL) }

// Kill sends SIGKILL to Patroni and PostgreSQL, and returns when none of their processes is left.
func (n *PatroniNode) Kill() {
	n.t.Helper()
	if n.isRunning() {
		// While it is stopped, Patroni cannot restart PostgreSQL.
		n.Freeze()
		n.KillPostgreSQL()
		n.server.Kill()
	}
}

// Freeze sends SIGSTOP to Patroni and PostgreSQL.
func (n *PatroniNode) Freeze() {
	n.FreezePatroni()
	n.signalPostgreSQL(syscall.SIGSTOP)
}

// FreezePatroni sends SIGSTOP to Patroni. PostgreSQL keeps running, and stays writable if it is the primary.
func (n *PatroniNode) FreezePatroni() { n.server.Freeze() }

// Thaw resumes Patroni and PostgreSQL. It does nothing if they do not run.
func (n *PatroniNode) Thaw() {
	n.signalPostgreSQL(syscall.SIGCONT)
	n.server.Thaw()
}

// signalPostgreSQL sends a signal to all processes of PostgreSQL, which are not children of Patroni. The PID file of a
// killed server is stale.
func (n *PatroniNode) signalPostgreSQL(signal syscall.Signal) {
	pid := n.pidFile()[0]
	dir, _ := os.Readlink(filepath.Join("/proc", pid, "cwd"))
	if id, err := strconv.Atoi(pid); err == nil && dir == n.path("data") {
		signalTree(id, signal)
	}
}
