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
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// avoidTime is how long a server is passed over at least. One that is frozen takes up the time in which another one
// may become the primary.
const avoidTime = time.Second

// A server that does not respond to a new connection within silenceTimeout is left for the others of the URL: a frozen one
// accepts connections, and responds to none. If no other one takes connections, it may only be busy, and has
// maxSilenceTimeout the next time.
const (
	silenceTimeout    = time.Second
	maxSilenceTimeout = 2 * time.Second
)

// forever is longer than any server takes.
const forever = time.Duration(math.MaxInt64)

var (
	errSkipped = errors.New("this server is passed over while there is another one")
	errSilent     = errors.New("this server does not respond, and there is another one")
	errAbandoned  = errors.New("the connection was abandoned")
)

// watchedConnOf returns the network connection of one to a database, below TLS.
func watchedConnOf(conn *pgconn.PgConn) *watchedConn {
	link := conn.Conn()
	if encrypted, ok := link.(*tls.Conn); ok {
		link = encrypted.NetConn()
	}
	return link.(*watchedConn)
}

// servers lets connections go to the server that committed last, and pass over those that do not commit or answer. An
// old primary that lost its standbys accepts connections and statements, and never commits; what is read there may have
// been changed at the new one. Where no other server takes connections, all are asked again after a while.
type servers struct {
	mutex sync.Mutex
	// primary is the address of the server that committed last; "" while all are asked.
	primary string
	// avoided are the times since when servers are passed over.
	avoided map[string]time.Time
	watched map[*watchedConn]bool
	// isPatient is set if the URL says how long each server may take.
	isPatient bool
	// silent has the servers that did not respond to a new connection: true until they get another try.
	silent map[string]bool
}

func newServers(isPatient bool) *servers {
	return &servers{
		avoided: map[string]time.Time{}, watched: map[*watchedConn]bool{},
		isPatient: isPatient, silent: map[string]bool{},
	}
}

// prefer notes that a server commits.
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

// avoid notes that a server did not commit or answer. What is being read there fails, and so do new connections.
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

// forget lets all servers be asked, where an error says that those that are not passed over took no connection.
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

// isSkipped is called with the mutex.
func (s *servers) isSkipped(address string) bool {
	_, isAvoided := s.avoided[address]
	return isAvoided || s.primary != "" && s.primary != address
}

// configure makes a connection that is to be made pass over servers where there are several, and gives it up where its
// server is passed over meanwhile; one that only reads also later. Once it is made, what cancels its statements reaches
// its server all the same: a commit that waits for a standby would otherwise wait on after its connection.
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

// dial makes a connection that is closed if its server is silent for too long.
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

// watchedConn is a connection that is closed when its server is passed over.
type watchedConn struct {
	net.Conn
	servers *servers
	// silence closes the connection, unless something was read before, and sets isSilent.
	silence  *time.Timer
	isSilent atomic.Bool
	// isAbandoned is set if the server must not be asked to cancel what it does for the connection.
	isAbandoned atomic.Bool
}

// abandon closes the connection, and leaves what the server does for it as it is.
func (c *watchedConn) abandon() {
	c.isAbandoned.Store(true)
	_ = c.Close()
}

// watch closes a connection whose server is passed over, or silent until the limit.
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

// Read reads what the server sends.
func (c *watchedConn) Read(into []byte) (int, error) {
	count, err := c.Conn.Read(into)
	c.silence.Stop()
	if err != nil && c.isSilent.Load() {
		return count, errSilent
	}
	return count, err //nolint:wrapcheck // It is the error of the connection.
}

// Close closes the connection, which may be closed already.
func (c *watchedConn) Close() error {
	c.servers.unwatch(c)
	if err := c.Conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err //nolint:wrapcheck // It is the error of the connection.
	}
	return nil
}

// checkConn closes a connection of a pool to a server that is passed over.
func (s *servers) checkConn(_ context.Context, conn *pgx.Conn) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.isSkipped(conn.PgConn().Conn().RemoteAddr().String()) {
		return driver.ErrBadConn
	}
	return nil
}
