package postgrestest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Timing settings of Patroni in seconds: nearly as low as its documentation allows, with some room for a busy machine.
const (
	patroniTTL          = 20
	patroniLoopWait     = 2
	patroniRetryTimeout = 5
)

const (
	// restTimeout limits a call of the REST API, which never returns on a frozen node.
	restTimeout = time.Second
	// logTail is how many bytes of a log are shown.
	logTail = 3000
)

// Patroni is a group of PostgreSQL servers that Patroni manages with one etcd, in strict synchronous mode: a commit is
// acknowledged only once it is on a standby.
type Patroni struct {
	// User is a superuser, who authenticates with Password by scram-sha-256.
	User, Password string
	Nodes          []*PatroniNode

	t        testing.TB
	etcdPort int
	etcd     *process
}

// NewPatroni starts nodes, one of them the primary and one its synchronous standby, which are closed with the test. If
// the test's process is killed, their servers keep running.
func NewPatroni(t testing.TB, count int) *Patroni {
	t.Helper()
	p := &Patroni{User: "postgres", Password: rand.Text(), t: t}
	p.startEtcd(t)
	for i := range count {
		p.Nodes = append(p.Nodes, p.newNode(t, "node"+strconv.Itoa(i+1)))
	}
	p.Restore(t)
	return p
}

func (p *Patroni) startEtcd(t testing.TB) {
	t.Helper()
	dir, err := newHome()
	check(t, "start etcd", err)
	clients, peers := freePort(t), freePort(t)
	p.etcdPort = clients
	toClients, toPeers := "http://127.0.0.1:"+strconv.Itoa(clients), "http://127.0.0.1:"+strconv.Itoa(peers)
	p.etcd, err = dir.start(killed, "etcd", "--data-dir", filepath.Join(dir.dir, "data"), "--enable-v2",
		"--listen-client-urls", toClients, "--advertise-client-urls", toClients,
		"--listen-peer-urls", toPeers, "--initial-advertise-peer-urls", toPeers, "--initial-cluster", "default="+toPeers)
	check(t, "start etcd; if it is missing, run make patroni", err)
	t.Cleanup(func() {
		ctx, cancel := waiting(t)
		defer cancel()
		check(t, "close etcd", errors.Join(p.etcd.signal(killed), p.etcd.wait(ctx), dir.remove()))
	})
}

// freePort returns an unused port below those of outgoing connections.
func freePort(t testing.TB) int {
	t.Helper()
	var found int
	err := onFreePort(func(port int) error {
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			return errPortTaken
		}
		found = port
		return listener.Close()
	})
	check(t, "find a free port", err)
	return found
}

// URL returns the URL of a database on all nodes.
func (p *Patroni) URL(database string) string {
	var addresses []string
	for _, node := range p.Nodes {
		addresses = append(addresses, node.Address())
	}
	return databaseURL(p.User, p.Password, strings.Join(addresses, ","), database)
}

// Primary waits until a node other than others is the primary, and returns it.
func (p *Patroni) Primary(t testing.TB, others ...*PatroniNode) *PatroniNode {
	t.Helper()
	var found *PatroniNode
	p.await(t, "a primary", func(ctx context.Context) error {
		for _, node := range p.Nodes {
			if !slices.Contains(others, node) && node.get(ctx, "primary", nil) == nil {
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
	var candidate string
	p.await(t, "a switchover", func(ctx context.Context) error {
		members, err := primary.members(ctx)
		if err != nil {
			return err
		}
		for _, m := range members {
			if m.Role == "sync_standby" {
				candidate = m.Name
			}
		}
		body := map[string]string{"leader": primary.Name, "candidate": candidate}
		return primary.send(ctx, http.MethodPost, "switchover", body, nil)
	})
}

// Restore thaws and starts all nodes, and returns once one is the primary and the others follow it, one of them
// synchronously.
func (p *Patroni) Restore(t testing.TB) {
	t.Helper()
	for _, node := range p.Nodes {
		node.Thaw()
		if !node.running() {
			node.start(t)
		}
	}
	p.await(t, "all nodes", func(ctx context.Context) error {
		members, err := p.Nodes[0].members(ctx)
		if err != nil {
			return err
		}
		roles := map[string]int{}
		timelines := map[int]bool{}
		for _, m := range members {
			if m.State != "running" && m.State != "streaming" {
				return fmt.Errorf("%s is %s", m.Name, m.State)
			}
			roles[m.Role]++
			timelines[m.Timeline] = true
		}
		if len(members) != len(p.Nodes) || roles["leader"] != 1 || roles["sync_standby"] != 1 || len(timelines) != 1 {
			return fmt.Errorf("members are %+v", members)
		}
		return nil
	})
}

// await calls ready until it returns nil.
func (p *Patroni) await(t testing.TB, what string, ready func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := waiting(t)
	defer cancel()
	err := await(ctx, nil, func() error { return ready(ctx) })
	if err == nil {
		return
	}
	for _, node := range p.Nodes {
		text := node.patroni.output.String()
		t.Logf("%s: %s", node.Name, text[max(0, len(text)-logTail):])
	}
	t.Fatalf("wait for %s: %v", what, err)
}

// member is the state of a node as Patroni reports it.
type member struct {
	Name, Role, State string
	Timeline          int
}

func (n *PatroniNode) members(ctx context.Context) ([]member, error) {
	var status struct{ Members []member }
	err := n.get(ctx, "cluster", &status)
	slices.SortFunc(status.Members, func(a, b member) int { return cmp.Compare(a.Name, b.Name) })
	return status.Members, err
}

// get queries the REST API of a node and decodes the response into result unless that is nil.
func (n *PatroniNode) get(ctx context.Context, path string, result any) error {
	ctx, cancel := context.WithTimeout(ctx, restTimeout)
	defer cancel()
	return n.send(ctx, http.MethodGet, path, nil, result)
}

func (n *PatroniNode) send(ctx context.Context, method, path string, body, result any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/%s", n.restPort, path)
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("query %s: %s", n.Name, response.Status)
	}
	if result == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(result)
}
