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

// Times of Patroni in seconds, as low as its documentation allows, with some room for a machine that does much else.
const (
	patroniTTL          = 20
	patroniLoopWait     = 2
	patroniRetryTimeout = 5
)

const (
	// answerTimeout is how long a REST API may take. That of a frozen node takes for ever.
	answerTimeout = time.Second
	// logTail is how much of a log is shown, in bytes.
	logTail = 3000
)

// Patroni is some PostgreSQL servers that Patroni leads over one etcd, in its strict synchronous mode: no commit is
// acknowledged that is not on a standby.
type Patroni struct {
	// User is a superuser, who authenticates with Password by scram-sha-256.
	User, Password string
	Nodes          []*PatroniNode

	t        testing.TB
	etcdPort int
	etcd     *process
}

// NewPatroni returns nodes that run, one of them the primary, and one its synchronous standby. They are closed with the
// test. Where the test's process is killed, their servers live on.
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
	folder, err := newHome()
	check(t, "start etcd", err)
	clients, peers := freePort(t), freePort(t)
	p.etcdPort = clients
	toClients, toPeers := "http://127.0.0.1:"+strconv.Itoa(clients), "http://127.0.0.1:"+strconv.Itoa(peers)
	p.etcd, err = folder.start(killed, "etcd", "--data-dir", filepath.Join(folder.folder, "data"), "--enable-v2",
		"--listen-client-urls", toClients, "--advertise-client-urls", toClients,
		"--listen-peer-urls", toPeers, "--initial-advertise-peer-urls", toPeers, "--initial-cluster", "default="+toPeers)
	check(t, "start etcd; if it is missing, run make patroni", err)
	t.Cleanup(func() {
		ctx, cancel := waiting(t)
		defer cancel()
		check(t, "close etcd", errors.Join(p.etcd.signal(killed), p.etcd.wait(ctx), folder.remove()))
	})
}

// freePort returns a port that nobody listens on, below those of outgoing connections.
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

// URL returns the URL of a database that names all nodes.
func (p *Patroni) URL(database string) string {
	var addresses []string
	for _, node := range p.Nodes {
		addresses = append(addresses, node.Address())
	}
	return databaseURL(p.User, p.Password, strings.Join(addresses, ","), database)
}

// Primary returns the node that leads, once there is one that is none of the others.
func (p *Patroni) Primary(t testing.TB, others ...*PatroniNode) *PatroniNode {
	t.Helper()
	var found *PatroniNode
	p.await(t, "a primary", func(ctx context.Context) error {
		for _, node := range p.Nodes {
			if !slices.Contains(others, node) && node.ask(ctx, "primary", nil) == nil {
				found = node
				return nil
			}
		}
		return errors.New("no node leads")
	})
	return found
}

// Switchover makes a synchronous standby the primary, and the primary a standby.
func (p *Patroni) Switchover(t testing.TB) {
	t.Helper()
	primary := p.Primary(t)
	var candidate string
	p.await(t, "a switchover", func(ctx context.Context) error {
		members, err := primary.members(ctx)
		if err != nil {
			return err
		}
		for _, one := range members {
			if one.Role == "sync_standby" {
				candidate = one.Name
			}
		}
		body := map[string]string{"leader": primary.Name, "candidate": candidate}
		return primary.send(ctx, http.MethodPost, "switchover", body, nil)
	})
}

// Restore thaws and starts all nodes, and returns once one leads and all others follow it, one of them synchronously.
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
		for _, one := range members {
			if one.State != "running" && one.State != "streaming" {
				return fmt.Errorf("%s is %s", one.Name, one.State)
			}
			roles[one.Role]++
			timelines[one.Timeline] = true
		}
		if len(members) != len(p.Nodes) || roles["leader"] != 1 || roles["sync_standby"] != 1 || len(timelines) != 1 {
			return fmt.Errorf("they are %+v", members)
		}
		return nil
	})
}

// await asks until ready returns nil.
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

// member is what Patroni says of a node.
type member struct {
	Name, Role, State string
	Timeline          int
}

func (n *PatroniNode) members(ctx context.Context) ([]member, error) {
	var answer struct{ Members []member }
	err := n.ask(ctx, "cluster", &answer)
	slices.SortFunc(answer.Members, func(a, b member) int { return cmp.Compare(a.Name, b.Name) })
	return answer.Members, err
}

// ask asks the REST API of a node, and reads its answer where that is wanted.
func (n *PatroniNode) ask(ctx context.Context, path string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return n.send(ctx, http.MethodGet, path, nil, answer)
}

func (n *PatroniNode) send(ctx context.Context, method, path string, body, answer any) error {
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
		return fmt.Errorf("ask %s: %s", n.Name, response.Status)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
