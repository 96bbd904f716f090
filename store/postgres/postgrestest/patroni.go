package postgrestest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store/storetest/processtest"
)

// Patroni is a group of PostgreSQL servers that Patroni manages with one etcd, in strict synchronous mode: a commit is
// acknowledged only once it is on a standby.
type Patroni struct {
	nodes    []*PatroniNode
	password string
}

// NewPatroni starts nodes, one of them the primary and one its synchronous standby, which are closed with the test. If
// the test's process is killed, their servers keep running.
func NewPatroni(t testing.TB, count int) *Patroni {
	t.Helper()
	p, etcd := &Patroni{password: rand.Text()}, startEtcd(t)
	for i := range count {
		p.nodes = append(p.nodes, newPatroniNode(t, fmt.Sprint("node", i+1), p.password, etcd))
	}
	p.Restore(t)
	return p
}

// startEtcd starts etcd, and returns its address.
func startEtcd(t testing.TB) string {
	t.Helper()
	etcd, address := newServer(t), processtest.Local(processtest.FreePort(t))
	peers := "http://" + processtest.Local(processtest.FreePort(t))
	etcd.start(etcd.command("etcd", "--data-dir", "data", "--enable-v2",
		"--listen-client-urls", "http://"+address, "--advertise-client-urls", "http://"+address,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers),
		func() error { return query(time.Second, http.MethodGet, address+"/health", nil, nil) })
	return address
}

// URL returns the URL of a database on all nodes.
func (p *Patroni) URL(database string) string {
	var addresses []string
	for _, node := range p.nodes {
		addresses = append(addresses, node.address)
	}
	return databaseURL(p.password, strings.Join(addresses, ","), database)
}

// Primary waits until a node other than others is the primary, and returns it.
func (p *Patroni) Primary(t testing.TB, others ...*PatroniNode) *PatroniNode {
	t.Helper()
	var found *PatroniNode
	p.await(t, "a primary", func() error {
		for _, node := range p.nodes {
			if !slices.Contains(others, node) && node.get("primary", nil) == nil {
				found = node
				return nil
			}
		}
		return errors.New("no node is the primary")
	})
	return found
}

// Switchover swaps the primary with its synchronous standby.
func (p *Patroni) Switchover(t testing.TB) {
	t.Helper()
	primary := p.Primary(t)
	p.await(t, "a switchover", func() error {
		members, err := primary.members()
		if err != nil {
			return err
		}
		body := map[string]string{"leader": primary.name}
		for _, m := range members {
			if m.Role == "sync_standby" {
				body["candidate"] = m.Name
			}
		}
		return query(processtest.Timeout, http.MethodPost, primary.rest+"/switchover", body, nil)
	})
}

// Restore thaws and starts all nodes, and returns once one is the primary and the others follow it, one of them
// synchronously.
func (p *Patroni) Restore(t testing.TB) {
	t.Helper()
	for _, node := range p.nodes {
		node.Thaw()
		if !node.isRunning() {
			node.start(node.command("patroni", "patroni.yml"), func() error { return nil })
		}
	}
	p.await(t, "all nodes", func() error {
		members, err := p.nodes[0].members()
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
		if len(members) != len(p.nodes) || roles["leader"] != 1 || roles["sync_standby"] != 1 || len(timelines) != 1 {
			return fmt.Errorf("members are %+v", members)
		}
		return nil
	})
}

// await calls ready until it returns nil.
func (p *Patroni) await(t testing.TB, what string, ready func() error) {
	t.Helper()
	if err := processtest.Poll(ready); err != nil {
		for _, node := range p.nodes {
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

func (n *PatroniNode) members() ([]member, error) {
	var status struct{ Members []member }
	err := n.get("cluster", &status)
	return status.Members, err
}

// get queries the REST API of a node, which never responds on a frozen node.
func (n *PatroniNode) get(path string, result any) error {
	return query(time.Second, http.MethodGet, n.rest+"/"+path, nil, result)
}

// query queries a REST API and decodes the response into result unless that is nil.
func query(timeout time.Duration, method, url string, body, result any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, "http://"+url, bytes.NewReader(text))
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
