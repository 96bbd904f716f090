package postgres

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// servers orders the hosts of the URL: the one that committed last is tried first, and one whose COMMIT got no response
// last, until another commits. An old primary that lost its standbys accepts statements but never commits.
type servers struct {
	mutex sync.Mutex
	// ranks order the hosts. Without a rank, they have the order of the URL.
	ranks   map[string]int
	changes int
	// primary is the host that committed last; "" if it was put last since.
	primary string
	// avoided counts the calls of avoid. Connections from before the last one are not used again.
	avoided atomic.Int64
}

// prefer puts a host that has committed first.
func (s *servers) prefer(host string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.changes++
	s.ranks[host], s.primary = -s.changes, host
}

// avoid puts the host of a connection that failed last, unless that has happened since the connection was opened.
func (s *servers) avoid(failed *link) {
	if since := failed.dialer.avoided; s.avoided.CompareAndSwap(since, since+1) {
		s.putLast(failed.host)
	}
}

func (s *servers) putLast(host string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.changes++
	s.ranks[host] = s.changes
	if s.primary == host {
		s.primary = ""
	}
}

// check rejects a pooled connection that the server has closed, that was opened before a host was avoided, or to
// another host than the last one that committed.
func (s *servers) check(_ context.Context, conn *pgx.Conn) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	link := linkOf(conn.PgConn().Conn())
	if link.dialer.avoided != s.avoided.Load() || s.primary != "" && s.primary != link.host || !link.isQuiet() {
		return driver.ErrBadConn
	}
	return nil
}

// configures returns an option that configures each new connection.
func (s *servers) configures(url URL) stdlib.OptionOpenDB {
	return stdlib.OptionBeforeConnect(func(_ context.Context, config *pgx.ConnConfig) error {
		s.configure(config, url.hasTimeout)
		config.OnNotice = keepNotice
		return nil
	})
}

// configure makes a new connection try the hosts in order. Unless the URL has a timeout of its own, a silent host is
// left for the next one.
func (s *servers) configure(config *pgx.ConnConfig, isPatient bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	hosts := attemptsOf(config)
	slices.SortStableFunc(hosts, func(a, b *pgconn.FallbackConfig) int {
		return cmp.Compare(s.ranks[hostOf(a)], s.ranks[hostOf(b)])
	})
	config.Host, config.Port, config.TLSConfig = hosts[0].Host, hosts[0].Port, hosts[0].TLSConfig
	config.Fallbacks = hosts[1:]
	last := hostOf(hosts[len(hosts)-1])
	d := &dialer{
		dial: config.DialFunc, lookUp: config.LookupFunc, names: map[string]string{}, putLast: s.putLast,
		last: last, isPatient: isPatient || last == hostOf(hosts[0]), avoided: s.avoided.Load(),
	}
	config.DialFunc, config.LookupFunc = d.open, d.resolve
}
