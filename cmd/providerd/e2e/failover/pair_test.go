//go:build proof

package failover_test

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// How long faults last, and how long it takes to notice them.
const (
	noticeTime     = time.Second
	outage         = 3 * time.Second
	longOutage     = 12 * time.Second
	cancelInterval = 50 * time.Millisecond
)

// pair is a primary and a synchronous standby, each behind its own proxy.
type pair struct {
	database             string
	primary, standby     *postgrestest.Cluster
	toPrimary, toStandby *proxy
	// isAsynchronous is set if commits do not wait for the standby.
	isAsynchronous bool
}

func newPair(t *testing.T) (site, string) {
	t.Helper()
	return pairWith(t, postgrestest.NewCluster(t), false)
}

// newAsynchronousPair is newPair with a standby for which commits do not wait.
func newAsynchronousPair(t *testing.T) (site, string) {
	return pairWith(t, postgrestest.NewCluster(t), true)
}

// newTerseGermanPair is newPair with servers that send messages in German, and by default only errors.
func newTerseGermanPair(t *testing.T) (site, string) {
	primary := postgrestest.NewClusterIn(t, postgrestest.German)
	primary.Exec(t, "postgres", "ALTER ROLE postgres SET client_min_messages = error")
	return pairWith(t, primary, false)
}

func pairWith(t *testing.T, primary *postgrestest.Cluster, isAsynchronous bool) (site, string) {
	t.Helper()
	p := &pair{primary: primary, toPrimary: newProxy(t), toStandby: newProxy(t), isAsynchronous: isAsynchronous}
	location := processtest.Try(url.Parse(p.primary.CreateDatabase(t))).Must(t)
	p.database = location.Path[1:]
	p.toPrimary.redirect(p.primary.Address())
	p.addStandby(t)
	location.Host = p.toPrimary.Addr().String() + "," + p.toStandby.Addr().String()
	return p, location.String()
}

func (p *pair) addStandby(t *testing.T) {
	t.Helper()
	p.standby = p.primary.AddStandby(t)
	p.toStandby.redirect(p.standby.Address())
	if !p.isAsynchronous {
		p.primary.RequireStandby(t, p.standby)
	}
}

// promote promotes the standby. The old primary counts as the standby from then on, although it is not aware of it.
func (p *pair) promote(t *testing.T) {
	t.Helper()
	p.standby.Promote(t)
	p.primary, p.standby = p.standby, p.primary
	p.toPrimary, p.toStandby = p.toStandby, p.toPrimary
}

func (p *pair) restore(t *testing.T) {
	t.Helper()
	p.standby.Close()
	p.addStandby(t)
}

func (p *pair) current(*testing.T) string { return p.primary.URL(p.database) }

func (p *pair) faults(fleet *providerdtest.Fleet) []fault {
	return []fault{
		{"primary killed", func(t *testing.T) { p.primary.Kill(); p.promote(t) }},
		{"primary frozen, and thawed later", func(t *testing.T) {
			p.primary.Freeze()
			<-time.After(noticeTime)
			p.promote(t)
			p.standby.Thaw()
		}},
		{"primary frozen for long, and never thawed", func(t *testing.T) {
			p.primary.Freeze()
			<-time.After(longOutage)
			p.promote(t)
		}},
		{"standby promoted beside its primary", p.promote},
		{"standby killed, and started again", func(t *testing.T) {
			p.standby.Kill()
			<-time.After(outage)
			p.standby.Start(t)
		}},
		{"standby frozen, and thawed", func(*testing.T) {
			p.standby.Freeze()
			<-time.After(outage)
			p.standby.Thaw()
		}},
		{"replica killed", func(t *testing.T) { fleet.Restart(t, 0, func() { <-time.After(noticeTime) }) }},
		{"commits canceled, standby promoted", p.loseCommits("pg_cancel_backend")},
		{"commits canceled, standby back", p.keepCommits("pg_cancel_backend")},
		{"commits terminated, standby promoted", p.loseCommits("pg_terminate_backend")},
		{"commits terminated, standby back", p.keepCommits("pg_terminate_backend")},
		{"network to the primary cut", func(t *testing.T) {
			p.toPrimary.redirect("")
			p.promote(t)
			p.toStandby.redirect(p.standby.Address())
		}},
		{"network to the primary stalled", func(t *testing.T) {
			p.toPrimary.passing.Lock()
			<-time.After(noticeTime)
			p.promote(t)
			p.toStandby.passing.Unlock()
		}},
	}
}

// loseCommits ends commits while the standby is stopped, and promotes it, which loses what they stored on the primary.
func (p *pair) loseCommits(function string) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		p.standby.Kill()
		endWaits(t, p.current(t), function, outage)
		p.primary.Freeze()
		p.standby.Start(t)
		p.promote(t)
		p.standby.Thaw()
	}
}

// keepCommits ends commits while the standby is stopped, then restarts the standby, which receives them.
func (p *pair) keepCommits(function string) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		p.standby.Kill()
		endWaits(t, p.current(t), function, outage)
		p.standby.Start(t)
	}
}

// endWaits cancels or terminates commits that wait for a standby, for a length of time.
func endWaits(t *testing.T, url, function string, length time.Duration) {
	t.Helper()
	conn := processtest.Try(pgx.Connect(t.Context(), url)).Must(t)
	defer func() { _ = conn.Close(t.Context()) }()
	for begun := time.Now(); time.Since(begun) < length; <-time.After(cancelInterval) {
		processtest.Try(conn.Exec(t.Context(), "SELECT "+function+"(pid) FROM pg_stat_activity WHERE wait_event = $1", "SyncRep")).Must(t)
	}
}

// proxy is the network between the replicas and a PostgreSQL server. It keeps its address when the server is replaced.
type proxy struct {
	net.Listener
	// passing is read-locked while data passes, and write-locked to stall the network.
	passing sync.RWMutex
	mutex   sync.Mutex
	// target is empty if the network is cut.
	target string
	// open may include closed connections.
	open []net.Conn
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	listener := processtest.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	p := &proxy{Listener: listener}
	t.Cleanup(func() { _ = listener.Close(); p.redirect("") })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.join(client)
		}
	}()
	return p
}

// redirect closes the connections and makes new ones go to target, or closes them if it is empty.
func (p *proxy) redirect(target string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, connection := range p.open {
		_ = connection.Close()
	}
	p.open, p.target = nil, target
}

func (p *proxy) join(client net.Conn) {
	server, err := p.dial(client)
	if err != nil {
		_ = client.Close()
		return
	}
	go p.copy(server, client)
	p.copy(client, server)
}

func (p *proxy) dial(client net.Conn) (net.Conn, error) {
	p.passing.RLock()
	defer p.passing.RUnlock()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return nil, err
	}
	p.open = append(p.open, client, server)
	return server, nil
}

func (p *proxy) copy(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	for buffer := make([]byte, 32<<10); ; {
		count, err := from.Read(buffer)
		p.passing.RLock()
		_, writeErr := to.Write(buffer[:count])
		p.passing.RUnlock()
		if err != nil || writeErr != nil {
			return
		}
	}
}
