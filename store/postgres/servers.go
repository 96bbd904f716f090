package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// avoidanceTime is how long a server is passed over at least. One that is frozen takes up the time in which another one
// may become the primary.
const avoidanceTime = time.Second

var (
	errPassedOver = errors.New("this server is passed over while there is another one")
	errAbandoned  = errors.New("the connection was abandoned")
)

// linkKey is where a connection to a database keeps its network connection.
const linkKey = "providerd.link"

func linkOf(conn *pgconn.PgConn) *watchedConn { return conn.CustomData()[linkKey].(*watchedConn) }

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
}

func newServers() *servers {
	return &servers{avoided: map[string]time.Time{}, watched: map[*watchedConn]bool{}}
}

// prefer notes that a server commits.
func (s *servers) prefer(address net.Addr) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.primary = address.String()
	delete(s.avoided, s.primary)
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
	if !errors.Is(err, errPassedOver) {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.primary = ""
	maps.DeleteFunc(s.avoided, func(_ string, since time.Time) bool { return time.Since(since) > avoidanceTime })
}

func (s *servers) isPassedOver(address string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	_, isAvoided := s.avoided[address]
	return isAvoided || s.primary != "" && s.primary != address
}

// guide makes a connection that is to be made pass over servers where there are several, and gives it up where its
// server is passed over meanwhile; one that only reads also later. Once it is made, what cancels its statements reaches
// its server all the same: a commit that waits for a standby would otherwise wait on after its connection.
func (s *servers) guide(config *pgx.ConnConfig, onlyReads bool) {
	hasOthers := len(hostsOf(config)) > 1
	dial := config.DialFunc
	var isMade atomic.Bool
	var watched *watchedConn
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if isMade.Load() {
			if watched.isAbandoned.Load() {
				return nil, errAbandoned
			}
			return dial(ctx, network, address)
		}
		if hasOthers && s.isPassedOver(address) {
			return nil, errPassedOver
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		watched = s.watch(conn)
		return watched, nil
	}
	config.AfterConnect = func(_ context.Context, conn *pgconn.PgConn) error {
		conn.CustomData()[linkKey] = watched
		isMade.Store(true)
		if !onlyReads {
			s.unwatch(watched)
		}
		return nil
	}
}

// watchedConn is a connection that is closed when its server is passed over.
type watchedConn struct {
	net.Conn
	servers *servers
	// isAbandoned is set if the server must not be asked to cancel what it does for the connection.
	isAbandoned atomic.Bool
}

// abandon closes the connection, and leaves what the server does for it as it is.
func (c *watchedConn) abandon() {
	c.isAbandoned.Store(true)
	_ = c.Close()
}

func (s *servers) watch(conn net.Conn) *watchedConn {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	watched := &watchedConn{Conn: conn, servers: s}
	s.watched[watched] = true
	return watched
}

func (s *servers) unwatch(conn *watchedConn) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.watched, conn)
}

// Close closes the connection.
func (c *watchedConn) Close() error {
	c.servers.unwatch(c)
	return c.Conn.Close() //nolint:wrapcheck // It is the error of the connection.
}

// refuse closes a connection of a pool to a server that is passed over.
func (s *servers) refuse(_ context.Context, conn *pgx.Conn) error {
	if s.isPassedOver(conn.PgConn().Conn().RemoteAddr().String()) {
		return driver.ErrBadConn
	}
	return nil
}
