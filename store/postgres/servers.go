package postgres

import (
	"context"
	"database/sql/driver"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A host that does not respond to a new connection within silenceTimeout is left for the next one: a frozen server
// accepts connections but never responds. The last one may only be busy, and gets maxSilenceTimeout.
const (
	silenceTimeout    = time.Second
	maxSilenceTimeout = 2 * time.Second
)

// servers orders the hosts of the URL: the one that committed last is tried first, and one whose COMMIT got no response
// last, until another commits. An old primary that lost its standbys accepts statements but never commits.
type servers struct {
	mutex sync.Mutex
	hosts []string
	// primary is the host that committed last; "" if it was avoided since.
	primary string
	// avoided counts the calls of avoid. Connections from before the last one are not used again.
	avoided atomic.Int64
}

// prefer puts a host that has committed first.
func (s *servers) prefer(host string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.primary != host {
		s.primary, s.hosts = host, slices.Insert(s.without(host), 0, host)
	}
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
	s.hosts = append(s.without(host), host)
	if s.primary == host {
		s.primary = ""
	}
}

func (s *servers) without(host string) []string {
	return slices.DeleteFunc(slices.Clone(s.hosts), func(other string) bool { return other == host })
}

// check rejects a pooled connection that the server has closed, that was opened before a host was avoided, or to
// another host than the one that committed last.
func (s *servers) check(_ context.Context, conn *pgx.Conn) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	link := linkOf(conn.PgConn())
	if link.dialer.avoided != s.avoided.Load() || s.primary != "" && s.primary != link.host || !link.isQuiet() {
		return driver.ErrBadConn
	}
	return nil
}

// configure makes a new connection try the hosts in order. Unless the URL has a timeout of its own, a silent host is
// left for the next one.
func (s *servers) configure(config *pgx.ConnConfig, isPatient bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	hosts := attemptsOf(config)
	slices.SortStableFunc(hosts, func(a, b *pgconn.FallbackConfig) int {
		return slices.Index(s.hosts, hostOf(a)) - slices.Index(s.hosts, hostOf(b))
	})
	config.Host, config.Port, config.TLSConfig = hosts[0].Host, hosts[0].Port, hosts[0].TLSConfig
	config.Fallbacks = hosts[1:]
	limits := map[string]time.Duration{}
	if len(s.hosts) > 1 && !isPatient {
		for _, host := range s.hosts {
			limits[host] = silenceTimeout
		}
		limits[s.hosts[len(s.hosts)-1]] = maxSilenceTimeout
	}
	d := &dialer{
		dial: config.DialFunc, lookUp: config.LookupFunc, names: map[string]string{}, limits: limits, isSilent: s.putLast,
		avoided: s.avoided.Load(),
	}
	config.DialFunc, config.LookupFunc = d.open, d.resolve
}
