//go:build proof

package failover_test

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

const (
	patroniNodes    = 3
	patroniDatabase = "postgres"
)

// managed is a group of PostgreSQL servers that Patroni manages with one etcd, in strict synchronous mode: a commit is
// acknowledged only once it is on a standby.
type managed struct{ nodes []*managedNode }

// newManaged starts nodes, one of them the primary and one its synchronous standby. It returns a URL of all nodes. If
// the test's process is killed, their servers keep running.
func newManaged(t *testing.T) (managed, string) {
	t.Helper()
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

// startEtcd starts etcd, and returns its address.
func startEtcd(t *testing.T) string {
	t.Helper()
	etcd, address := postgrestest.NewServer(t), processtest.Local(processtest.FreePort(t))
	peers := "http://" + processtest.Local(processtest.FreePort(t))
	etcd.Launch(etcd.Command("etcd", "--data-dir", "data", "--enable-v2",
		"--listen-client-urls", "http://"+address, "--advertise-client-urls", "http://"+address,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers),
		func() error { return query(time.Second, http.MethodGet, address+"/health", "", nil) })
	return address
}

// primary waits until a node other than others is the primary, and returns it.
func (m managed) primary(t *testing.T, others ...*managedNode) (found *managedNode) {
	t.Helper()
	m.await(t, "a primary", func() error {
		for _, node := range m.nodes {
			if !slices.Contains(others, node) && node.get("primary", nil) == nil {
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
	t.Helper()
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
		return query(processtest.Timeout, http.MethodPost, primary.rest+"/switchover", body, nil)
	})
}

// restore thaws and starts all nodes, and returns once one is the primary and the others follow it, one of them
// synchronously.
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

// await calls ready until it returns nil.
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
	err := n.get("cluster", &status)
	return status.Members, err
}

// get queries the REST API of a node, which never responds on a frozen node.
func (n *managedNode) get(path string, result any) error {
	return query(time.Second, http.MethodGet, n.rest+"/"+path, "", result)
}

// query queries a REST API and decodes the response into result unless that is nil.
func query(timeout time.Duration, method, url, body string, result any) error {
	request, err := http.NewRequest(method, "http://"+url, strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := (&http.Client{Timeout: timeout}).Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	if result == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(result)
}
