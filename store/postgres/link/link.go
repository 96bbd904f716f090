// Package link finds the PostgreSQL server of a URL that commits, and watches the connections to it. A frozen server or
// an old primary is left for another one.
//
// Start with Servers, whose connections are Links. url.go has what operators configure.
package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// maxIdleTime is how long an idle connection stays open. It is short because other replicas may need the connection.
const maxIdleTime = 10 * time.Second

// Servers orders the hosts of the URL: the one that committed last comes first, and one whose COMMIT got no response
// last until another commits, as an old primary without standbys never does. At first, the URL's order holds.
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

// configure makes a new connection try the hosts in order, and leave silent ones unless the URL has a timeout.
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

// dialer opens the link of one connection, and later the links that ask its server to cancel a statement.
type dialer struct {
	dial   pgconn.DialFunc
	lookUp pgconn.LookupFunc
	// names has the hosts of the URL by address.
	names map[string]string
	// last is the host that is tried last, and isPatient is set if hosts may be silent until the connect timeout.
	last      string
	isPatient bool
	// prepared is nil if the URL forbids prepared statements: behind a pooler, each transaction may change connections.
	prepared map[string]string
	// putLast is called for a silent host.
	putLast func(host string)
	// avoided is the count of servers before the connection was opened.
	avoided int64
	// isAbandoned is set if the server must not be asked to cancel a statement.
	isAbandoned atomic.Bool
}

// resolve returns the addresses of a host.
func (d *dialer) resolve(ctx context.Context, host string) ([]string, error) {
	addresses, err := d.lookUp(ctx, host)
	for _, address := range addresses {
		d.names[address] = host
	}
	return addresses, err
}

// If a host does not respond to a new connection within silenceTimeout, the next host is tried: a frozen server accepts
// connections but never responds. The last host has maxSilenceTimeout, because it may only be busy.
const (
	silenceTimeout    = time.Second
	maxSilenceTimeout = 2 * time.Second
)

func (d *dialer) limit(host string) time.Duration {
	switch {
	case d.isPatient:
		return math.MaxInt64
	case host == d.last:
		return maxSilenceTimeout
	default:
		return silenceTimeout
	}
}

// open opens a link, which ends if its server is silent for too long.
func (d *dialer) open(ctx context.Context, network, address string) (net.Conn, error) {
	if d.isAbandoned.Load() {
		return nil, errors.New("connection was abandoned")
	}
	host := address
	if ip, port, err := net.SplitHostPort(address); err == nil {
		host = d.names[ip] + ":" + port
	}
	limit := d.limit(host)
	dialing, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := d.dial(dialing, network, address)
	if err != nil {
		if dialing.Err() != nil && ctx.Err() == nil {
			d.putLast(host)
		}
		return nil, err
	}
	l := &Link{Conn: conn, host: host, dialer: d, Prepared: d.prepared}
	l.silence = time.AfterFunc(limit, func() {
		if l.End() {
			d.putLast(host)
		}
	})
	return l, nil
}

// Link is the network connection of a connection, below TLS.
type Link struct {
	net.Conn
	host   string
	dialer *dialer
	// silence ends the link unless something is read before.
	silence *time.Timer
	// Warning is the last warning since it was reset.
	Warning error
	// Prepared has the names of prepared statements, by text; nil if none are prepared.
	Prepared map[string]string
}

// Of returns the link of a network connection of the driver, which may be encrypted.
func Of(conn net.Conn) *Link {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	return conn.(*Link)
}

// Read implements net.Conn.
func (l *Link) Read(into []byte) (int, error) {
	count, err := l.Conn.Read(into)
	l.silence.Stop()
	return count, err //nolint:wrapcheck // It is the error of the connection.
}

// End makes all reads and writes fail, and reports whether the link was open.
func (l *Link) End() bool { return l.SetDeadline(time.Unix(1, 0)) == nil }

// Abandon ends the link without canceling its statement on the server.
func (l *Link) Abandon() {
	l.dialer.isAbandoned.Store(true)
	l.End()
}

// isQuiet reports whether the server has sent nothing more. A server that is shut down reports it before it closes an
// idle connection. Anything sent on such a connection would have an unknown outcome.
func (l *Link) isQuiet() bool {
	raw, err := l.Conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	var peekErr error
	// Not raw.Read, which waits for a reader that the driver may have left in the background.
	err = raw.Control(func(fd uintptr) {
		_, _, peekErr = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return err == nil && errors.Is(peekErr, syscall.EAGAIN)
}

// keepNotice keeps a warning. The only sign that a commit was not replicated is a warning of COMMIT, which may be
// translated; other statements warn of what does not affect the outcome, such as transaction ids that run out. Poolers
// may leave out the severity that is never translated.
func keepNotice(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if severity := notice.SeverityUnlocalized; severity == "WARNING" || severity == "" {
		Of(conn.Conn()).Warning = errors.New(notice.Message)
	}
}
