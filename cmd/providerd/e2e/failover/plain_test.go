//go:build proof

package failover_test

import (
	"net/url"
	"testing"
	"time"

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

// newPair starts a pair with an empty database, and returns its URL.
func newPair(t *testing.T) (*pair, string) {
	t.Helper()
	return pairWith(t, postgrestest.NewCluster(t))
}

// newAsynchronousPair is newPair with a standby for which commits do not wait.
func newAsynchronousPair(t *testing.T) (*pair, string) {
	t.Helper()
	p, location := newPair(t)
	p.isAsynchronous = true
	p.primary.Set(t, "synchronous_standby_names", "")
	return p, location
}

// newTerseGermanPair is newPair with servers that send messages in German, and by default only errors.
func newTerseGermanPair(t *testing.T) (*pair, string) {
	t.Helper()
	primary := postgrestest.NewClusterIn(t, postgrestest.German)
	primary.Exec(t, "postgres", "ALTER ROLE postgres SET client_min_messages = error")
	return pairWith(t, primary)
}

func pairWith(t *testing.T, primary *postgrestest.Cluster) (*pair, string) {
	t.Helper()
	p := &pair{primary: primary, toPrimary: newProxy(t), toStandby: newProxy(t)}
	location, err := url.Parse(p.primary.CreateDatabase(t))
	processtest.Must(t, err)
	p.database = location.Path[1:]
	p.toPrimary.redirect(p.primary.Address())
	p.addStandby(t)
	location.Host = p.toPrimary.address() + "," + p.toStandby.address()
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

// restore replaces the old primary with a new standby.
func (p *pair) restore(t *testing.T) {
	t.Helper()
	p.standby.Close()
	p.addStandby(t)
}

// current returns the URL of the database on the primary.
func (p *pair) current(*testing.T) string { return p.primary.URL(p.database) }

// plainKinds returns the faults of a pair.
func plainKinds() []failoverKind[*pair] {
	return []failoverKind[*pair]{
		{"primary killed", func(t *testing.T, _ *failover, p *pair) {
			p.primary.Kill()
			p.promote(t)
		}},
		{"primary frozen, and thawed later", func(t *testing.T, _ *failover, p *pair) {
			p.primary.Freeze()
			<-time.After(noticeTime)
			p.promote(t)
			p.standby.Thaw()
		}},
		{"primary frozen for long, and never thawed", func(t *testing.T, _ *failover, p *pair) {
			p.primary.Freeze()
			<-time.After(longOutage)
			p.promote(t)
		}},
		{"standby promoted beside its primary", func(t *testing.T, _ *failover, p *pair) { p.promote(t) }},
		{"standby killed, and started again", func(t *testing.T, _ *failover, p *pair) {
			p.standby.Kill()
			<-time.After(outage)
			p.standby.Start(t)
		}},
		{"standby frozen, and thawed", func(_ *testing.T, _ *failover, p *pair) {
			p.standby.Freeze()
			<-time.After(outage)
			p.standby.Thaw()
		}},
		{"replica killed", func(t *testing.T, f *failover, _ *pair) {
			f.fleet.Restart(t, 0, func() { <-time.After(noticeTime) })
		}},
		{"commits canceled, standby promoted", func(t *testing.T, _ *failover, p *pair) {
			p.loseCommits(t, "pg_cancel_backend")
		}},
		{"commits canceled, standby back", func(t *testing.T, _ *failover, p *pair) {
			p.keepCommits(t, "pg_cancel_backend")
		}},
		{"commits terminated, standby promoted", func(t *testing.T, _ *failover, p *pair) {
			p.loseCommits(t, "pg_terminate_backend")
		}},
		{"commits terminated, standby back", func(t *testing.T, _ *failover, p *pair) {
			p.keepCommits(t, "pg_terminate_backend")
		}},
		{"network to the primary cut", func(t *testing.T, _ *failover, p *pair) {
			p.toPrimary.redirect("")
			p.promote(t)
			p.toStandby.redirect(p.standby.Address())
		}},
		{"network to the primary stalled", func(t *testing.T, _ *failover, p *pair) {
			p.toPrimary.passing.Lock()
			<-time.After(noticeTime)
			p.promote(t)
			p.toStandby.passing.Unlock()
		}},
	}
}

// loseCommits ends commits while the standby is stopped, then promotes the standby: what they stored on the primary
// only is lost, although the primary keeps running.
func (p *pair) loseCommits(t *testing.T, function string) {
	t.Helper()
	p.standby.Kill()
	endWaits(t, p.current(t), function, outage)
	p.primary.Freeze()
	p.standby.Start(t)
	p.promote(t)
	p.standby.Thaw()
}

// keepCommits ends commits while the standby is stopped, then restarts the standby, which receives them.
func (p *pair) keepCommits(t *testing.T, function string) {
	t.Helper()
	p.standby.Kill()
	endWaits(t, p.current(t), function, outage)
	p.standby.Start(t)
}
