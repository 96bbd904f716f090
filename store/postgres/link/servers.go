package link

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// maxIdleTime is how long an idle connection stays open. It is short because other replicas may need the connection.
const maxIdleTime = 10 * time.Second

// Servers orders the hosts of the URL: the one that committed last is tried first, and one whose COMMIT got no response
// last, until another commits. An old primary that lost its standbys accepts statements but never commits. The order
// begins with that of the URL.
type Servers struct {
	mutex sync.Mutex
	// ranks order the hosts. Those without a rank have the order of the URL.
	ranks   map[string]int
	changes int
	// primary is the host that committed last; "" if it was put last since.
	primary string
	// avoided counts the calls of Avoid. Connections from before the last one are not used again.
	avoided atomic.Int64
}

// Open opens a pool. prepare is called for each new connection.
func (s *Servers) Open(url URL, connections int, prepare func(context.Context, *pgx.Conn) error) *sql.DB {
	pool := stdlib.OpenDB(*url.config,
		stdlib.OptionBeforeConnect(func(_ context.Context, config *pgx.ConnConfig) error {
			s.configure(config, url.hasTimeout)
			return nil
		}),
		stdlib.OptionAfterConnect(prepare),
		stdlib.OptionResetSession(s.check),
		// A frozen server never responds to a ping.
		stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false }))
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	pool.SetConnMaxIdleTime(maxIdleTime)
	return pool
}

// Prefer puts the host of a connection that has committed first.
func (s *Servers) Prefer(committed *Link) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.changes++
	s.ranks[committed.host], s.primary = -s.changes, committed.host
}

// Avoid puts the host of a connection that failed last, unless that has happened since the connection was opened.
func (s *Servers) Avoid(failed *Link) {
	if since := failed.dialer.avoided; s.avoided.CompareAndSwap(since, since+1) {
		s.putLast(failed.host)
	}
}

func (s *Servers) putLast(host string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.changes++
	s.ranks[host] = s.changes
	if s.primary == host {
		s.primary = ""
	}
}

// check rejects a pooled connection that the server has closed, that is stale, or that leads to another host than the
// last one that committed.
func (s *Servers) check(_ context.Context, conn *pgx.Conn) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	link := Of(conn.PgConn().Conn())
	if s.IsStale(link) || s.primary != "" && s.primary != link.host || !link.isQuiet() {
		return driver.ErrBadConn
	}
	return nil
}

// IsStale reports whether a host was avoided since the connection was opened.
func (s *Servers) IsStale(l *Link) bool { return l.dialer.avoided != s.avoided.Load() }

// configure makes a new connection try the hosts in order. Unless the URL has a timeout of its own, a silent host is
// left for the next one.
func (s *Servers) configure(config *pgx.ConnConfig, isPatient bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.ranks == nil {
		s.ranks = map[string]int{}
	}
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
	if config.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		d.prepared = map[string]string{}
	}
	config.DialFunc, config.LookupFunc, config.OnNotice = d.open, d.resolve, keepNotice
}
