package postgres

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"maps"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// avoidTime is the least time for which a server is avoided. Waiting for a frozen server would use up the time in which
// another one may become the primary.
const avoidTime = time.Second

// A server that does not respond to a new connection within silenceTimeout is skipped: a frozen server accepts
// connections but never responds. If no other server of the URL accepts connections, it may only be busy, and gets
// maxSilenceTimeout at the next attempt.
const (
	silenceTimeout    = time.Second
	maxSilenceTimeout = 2 * time.Second
)

const forever = time.Duration(math.MaxInt64)

var (
	errSkipped   = errors.New("server skipped in favor of another one")
	errSilent    = errors.New("server does not respond")
	errAbandoned = errors.New("connection was abandoned")
)

// watchedConnOf returns the network connection below TLS.
func watchedConnOf(conn *pgconn.PgConn) *watchedConn {
	link := conn.Conn()
	if encrypted, ok := link.(*tls.Conn); ok {
		link = encrypted.NetConn()
	}
	return link.(*watchedConn)
}

// servers directs connections to the server that committed last, and away from those that do not commit or respond. An
// old primary that lost its standbys accepts connections and statements but never commits, and reads from it may be
// stale. If no other server accepts connections, all are tried again after a while.
type servers struct {
	mutex sync.Mutex
	// primary is the address of the server that committed last; "" if all are tried.
	primary string
	// avoided maps the addresses of avoided servers to the times when that began.
	avoided map[string]time.Time
	watched map[*watchedConn]bool
	// isPatient is set if the URL has a connect timeout of its own.
	isPatient bool
	// silent has the servers that did not respond to a new connection; true until the next attempt.
	silent map[string]bool
}

func newServers(isPatient bool) *servers {
	return &servers{
		avoided: map[string]time.Time{}, watched: map[*watchedConn]bool{},
		isPatient: isPatient, silent: map[string]bool{},
	}
}

// prefer records that a server committed.
func (s *servers) prefer(address net.Addr) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.primary = address.String()
	delete(s.avoided, s.primary)
	clear(s.silent)
}

func (s *servers) noteSilence(address string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.silent[address] = true
}

// avoid records that a server did not commit or respond. Reads in flight there fail, and so do new connections.
func (s *servers) avoid(address net.Addr) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.avoided[address.String()] = time.Now()
	if s.primary == address.String() {
		s.primary = ""
	}
	for conn := range s.watched {
		if conn.RemoteAddr().String() == address.String() {
			_ = conn.Conn.Close()
		}
	}
}

// forget makes all servers eligible again if err says that the eligible ones accepted no connection.
func (s *servers) forget(err error) {
	if !errors.Is(err, errSkipped) {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.primary = ""
	maps.DeleteFunc(s.avoided, func(_ string, since time.Time) bool { return time.Since(since) > avoidTime })
	for address := range s.silent {
		s.silent[address] = false
	}
}

// admit returns how long a server may take to respond to a new connection, or errSkipped.
func (s *servers) admit(address string) (limit time.Duration, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	isSilent, wasSilent := s.silent[address]
	switch {
	case isSilent || s.isSkipped(address):
		return 0, errSkipped
	case s.isPatient:
		return forever, nil
	case wasSilent:
		return maxSilenceTimeout, nil
	default:
		return silenceTimeout, nil
	}
}

// isSkipped reports whether connections to a server are refused. The caller holds the mutex.
func (s *servers) isSkipped(address string) bool {
	_, isAvoided := s.avoided[address]
	return isAvoided || s.primary != "" && s.primary != address
}

// configure makes a new connection skip servers if the URL names several, and closes it if its server is avoided before
// it is established; a connection that only reads, also later. Cancel requests of an established connection still reach
// its server: otherwise a commit that waits for a standby would keep waiting after its connection is closed.
func (s *servers) configure(config *pgx.ConnConfig, onlyReads bool) {
	hasOthers := len(hostsOf(config)) > 1
	dial := config.DialFunc
	var made atomic.Pointer[watchedConn]
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if link := made.Load(); link != nil {
			if link.isAbandoned.Load() {
				return nil, errAbandoned
			}
			return dial(ctx, network, address)
		}
		limit := forever
		if hasOthers {
			var err error
			if limit, err = s.admit(address); err != nil {
				return nil, err
			}
		}
		return s.dial(ctx, network, address, dial, limit)
	}
	config.AfterConnect = func(_ context.Context, conn *pgconn.PgConn) error {
		link := watchedConnOf(conn)
		made.Store(link)
		if !onlyReads {
			s.unwatch(link)
		}
		return nil
	}
}

// dial opens a connection that is closed if its server does not respond within limit.
func (s *servers) dial(
	ctx context.Context, network, address string, dial pgconn.DialFunc, limit time.Duration,
) (net.Conn, error) {
	dialing, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := dial(dialing, network, address)
	if err != nil {
		if dialing.Err() != nil && ctx.Err() == nil {
			s.noteSilence(address)
		}
		return nil, err
	}
	return s.watch(conn, limit), nil
}

// watchedConn is a connection that is closed when its server is avoided.
type watchedConn struct {
	net.Conn
	servers *servers
	// silence closes the connection and sets isSilent, unless something is read before.
	silence  *time.Timer
	isSilent atomic.Bool
	// isAbandoned is set if the server must not be asked to cancel the statement of the connection.
	isAbandoned atomic.Bool
}

// abandon closes the connection without canceling its statement on the server.
func (c *watchedConn) abandon() {
	c.isAbandoned.Store(true)
	_ = c.Close()
}

// watch returns a connection that is closed when its server is avoided or has not responded within limit.
func (s *servers) watch(conn net.Conn, limit time.Duration) *watchedConn {
	watched := &watchedConn{Conn: conn, servers: s}
	watched.silence = time.AfterFunc(limit, func() {
		watched.isSilent.Store(true)
		s.noteSilence(conn.RemoteAddr().String())
		_ = watched.Close()
	})
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.watched[watched] = true
	return watched
}

func (s *servers) unwatch(conn *watchedConn) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.watched, conn)
}

// Read implements net.Conn. It returns errSilent if the server did not respond in time.
func (c *watchedConn) Read(into []byte) (int, error) {
	count, err := c.Conn.Read(into)
	c.silence.Stop()
	if err != nil && c.isSilent.Load() {
		return count, errSilent
	}
	return count, err //nolint:wrapcheck // It is the error of the connection.
}

// Close closes the connection. It may be called more than once.
func (c *watchedConn) Close() error {
	c.servers.unwatch(c)
	if err := c.Conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err //nolint:wrapcheck // It is the error of the connection.
	}
	return nil
}

// checkConn rejects a pooled connection to a server that is skipped or that has closed it, so that the pool closes it.
func (s *servers) checkConn(_ context.Context, conn *pgx.Conn) error {
	link := watchedConnOf(conn.PgConn())
	isQuiet := link.isQuiet()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !isQuiet || s.isSkipped(link.RemoteAddr().String()) {
		return driver.ErrBadConn
	}
	return nil
}

// isQuiet reports whether the server has sent nothing more. A server that is shut down says so before it closes an idle
// connection. Anything sent on such a connection would have an unknown outcome.
func (c *watchedConn) isQuiet() bool {
	native, ok := c.Conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := native.SyscallConn()
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
