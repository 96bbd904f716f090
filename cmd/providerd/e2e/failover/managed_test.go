//go:build proof

package failover_test

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

const patroniNodes, patroniDatabase = 3, "postgres"

// managed is a group of servers that Patroni manages with one etcd, and that acknowledge commits once on a standby.
type managed struct{ nodes []*managedNode }

// newManaged starts a primary and its standbys, which outlive a killed test. It returns a URL of all nodes.
func newManaged(t *testing.T) (site, string) {
	processtest.NeedPrograms(t, "patroni", "patroni", "etcd")
	m, etcd, password := managed{}, startEtcd(t), rand.Text()
	var addresses []string
	for i := range patroniNodes {
		node := newManagedNode(t, fmt.Sprint("node", i+1), password, etcd)
		m.nodes, addresses = append(m.nodes, node), append(addresses, node.address)
	}
	m.restore(t)
	return m, postgrestest.DatabaseURL(password, strings.Join(addresses, ","), patroniDatabase)
}

func startEtcd(t *testing.T) string {
	etcd, address := postgrestest.NewServer(t), processtest.Local(processtest.FreePort(t))
	peers := "http://" + processtest.Local(processtest.FreePort(t))
	etcd.Launch(etcd.Command("etcd", "--data-dir", "data", "--enable-v2",
		"--listen-client-urls", "http://"+address, "--advertise-client-urls", "http://"+address,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers),
		func() error { _, err := query(time.Second, http.MethodGet, address, "/health", ""); return err })
	return address
}

// faults returns the faults of nodes managed by Patroni, after which restore thaws and restarts them.
func (m managed) faults(*providerdtest.Fleet) []fault {
	return []fault{
		{"Patroni: PostgreSQL killed", func(t *testing.T) { m.primary(t).signalPostgreSQL(syscall.SIGKILL) }},
		{"Patroni: node killed", func(t *testing.T) { m.replace(t, (*managedNode).Kill) }},
		{"Patroni: switchover", func(t *testing.T) { m.replace(t, func(old *managedNode) { m.switchOver(t, old) }) }},
		{"Patroni: node frozen, and thawed later", func(t *testing.T) { m.replace(t, (*managedNode).Freeze).Thaw() }},
		// PostgreSQL keeps running, and stays writable.
		{"Patroni: Patroni alone frozen", func(t *testing.T) {
			old := m.replace(t, func(old *managedNode) { old.Server.Freeze() })
			endWaits(t, old.url(), "pg_cancel_backend", noticeTime)
		}},
	}
}

// primary waits until a node other than others is the primary, and returns it.
func (m managed) primary(t *testing.T, others ...*managedNode) (found *managedNode) {
	t.Helper()
	m.await(t, "a primary", func() error {
		for _, node := range m.nodes {
			// A frozen node never responds.
			_, err := query(time.Second, http.MethodGet, node.rest, "/primary", "")
			if err == nil && !slices.Contains(others, node) {
				found = node
				return nil
			}
		}
		return errors.New("no node is the primary")
	})
	return found
}

func (m managed) current(t *testing.T) string {
	t.Helper()
	return m.primary(t).url()
}

// replace calls strike with the primary, and returns that node once another one is the primary.
func (m managed) replace(t *testing.T, strike func(old *managedNode)) *managedNode {
	t.Helper()
	old := m.primary(t)
	strike(old)
	m.primary(t, old)
	return old
}

// switchOver swaps the primary with its synchronous standby.
func (m managed) switchOver(t *testing.T, primary *managedNode) {
	m.await(t, "a switchover", func() error {
		members, err := primary.members()
		if err != nil {
			return err
		}
		candidate := ""
		for _, m := range members {
			if m.Role == "sync_standby" {
				candidate = m.Name
			}
		}
		body := fmt.Sprintf(`{"leader":%q,"candidate":%q}`, primary.name, candidate)
		_, err = query(processtest.Timeout, http.MethodPost, primary.rest, "/switchover", body)
		return err
	})
}

// restore thaws and starts all nodes. It returns once one is the primary and the others follow it, one synchronously.
func (m managed) restore(t *testing.T) {
	t.Helper()
	for _, node := range m.nodes {
		node.Thaw()
		if !node.IsRunning() {
			node.Launch(node.Command("patroni", "patroni.yml"), func() error { return nil })
		}
	}
	m.await(t, "all nodes", func() error {
		members, err := m.nodes[0].members()
		if err != nil {
			return err
		}
		roles, timelines := map[string]int{}, map[int]bool{}
		for _, m := range members {
			if m.State != "running" && m.State != "streaming" {
				return fmt.Errorf("%s is %s", m.Name, m.State)
			}
			roles[m.Role]++
			timelines[m.Timeline] = true
		}
		if len(members) != patroniNodes || roles["leader"] != 1 || roles["sync_standby"] != 1 || len(timelines) != 1 {
			return fmt.Errorf("members are %+v", members)
		}
		return nil
	})
}

func (m managed) await(t *testing.T, what string, ready func() error) {
	t.Helper()
	if err := processtest.Poll(ready); err != nil {
		for _, node := range m.nodes {
			text := node.Log()
			t.Logf("%s: %s", node.name, text[max(0, len(text)-3000):])
		}
		t.Fatalf("wait for %s: %v", what, err)
	}
}

// member is the state of a node as Patroni reports it.
type member struct {
	Name, Role, State string
	Timeline          int
}

func (n *managedNode) members() ([]member, error) {
	var status struct{ Members []member }
	text, err := query(time.Second, http.MethodGet, n.rest, "/cluster", "")
	if err == nil {
		err = json.Unmarshal([]byte(text), &status)
	}
	return status.Members, err
}

func query(timeout time.Duration, method, address, path, body string) (string, error) {
	api := &providerdtest.Server{URL: "http://" + address}
	status, text, err := api.Do(&http.Client{Timeout: timeout}, method, path, "", body, nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s%s: status %d", address, path, status)
	}
	return text, err
}

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

func newManagedNode(t *testing.T, name, password, etcd string) *managedNode {
	n := &managedNode{
		Server: postgrestest.NewServer(t), name: name, password: password,
		address: processtest.Local(processtest.FreePort(t)), rest: processtest.Local(processtest.FreePort(t)),
	}
	n.Write("patroni.yml", strings.NewReplacer("NAME", name, "REST", n.rest, "ETCD", etcd, "ADDRESS", n.address,
		"DIR", n.Path(""), "BINARIES", postgrestest.Programs(t), "PASSWORD", password).Replace(patroniSettings))
	// Before the directory is removed.
	t.Cleanup(n.Kill)
	return n
}

func (n *managedNode) url() string {
	return postgrestest.DatabaseURL(n.password, n.address, patroniDatabase)
}

// Kill sends SIGKILL to Patroni and PostgreSQL, and returns when none of their processes is left.
func (n *managedNode) Kill() {
	if n.IsRunning() {
		// While it is stopped, Patroni cannot restart PostgreSQL.
		n.Freeze()
		n.signalPostgreSQL(syscall.SIGKILL)
		n.Server.Kill()
	}
}

// Freeze sends SIGSTOP to Patroni and PostgreSQL.
func (n *managedNode) Freeze() {
	n.Server.Freeze()
	n.signalPostgreSQL(syscall.SIGSTOP)
}

// Thaw resumes Patroni and PostgreSQL. It does nothing if they do not run.
func (n *managedNode) Thaw() {
	n.signalPostgreSQL(syscall.SIGCONT)
	n.Server.Thaw()
}

// signalPostgreSQL signals all processes of PostgreSQL, which are not Patroni's children. A killed one's PID is stale.
func (n *managedNode) signalPostgreSQL(signal syscall.Signal) {
	pid := n.PIDFile()[0]
	dir, _ := os.Readlink(filepath.Join("/proc", pid, "cwd"))
	if id, err := strconv.Atoi(pid); err == nil && dir == n.Path("data") {
		postgrestest.SignalTree(id, signal)
	}
}
