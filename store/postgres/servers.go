package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var errPassedOver = errors.New("this server is passed over while there is another one")

// servers lets connections go to the server that committed last, and pass over those that do not commit or answer. An
// old primary that lost its standbys accepts connections and statements, and never commits; what is read there may have
// been changed at the new one. Where no other server takes connections, all are asked again.
type servers struct {
	mutex sync.Mutex
	// primary is the address of the server that committed last; "" while all are asked.
	primary string
	avoided map[string]bool
	// reading are the connections that only read.
	reading map[*readingConn]bool
}

func newServers() *servers {
	return &servers{avoided: map[string]bool{}, reading: map[*readingConn]bool{}}
}

// prefer notes that a server commits.
func (s *servers) prefer(address net.Addr) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.primary = address.String()
	delete(s.avoided, s.primary)
}

// avoid notes that a server did not commit or answer. What is being read there fails.
func (s *servers) avoid(address net.Addr) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.avoided[address.String()] = true
	if s.primary == address.String() {
		s.primary = ""
	}
	for conn := range s.reading {
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
	clear(s.avoided)
}

func (s *servers) isPassedOver(address string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.avoided[address] || s.primary != "" && s.primary != address
}

// guide makes a connection that is to be made pass over servers. Once it is made, what cancels its statements reaches
// its server all the same: a commit that waits for a standby would otherwise wait on after its connection.
func (s *servers) guide(config *pgx.ConnConfig) {
	var isMade atomic.Bool
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if !isMade.Load() && s.isPassedOver(address) {
			return nil, errPassedOver
		}
		return dial(ctx, network, address)
	}
	config.AfterConnect = func(context.Context, *pgconn.PgConn) error {
		isMade.Store(true)
		return nil
	}
}

// guideReader is guide for a connection that only reads.
func (s *servers) guideReader(config *pgx.ConnConfig) {
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		s.mutex.Lock()
		defer s.mutex.Unlock()
		noted := &readingConn{Conn: conn, servers: s}
		s.reading[noted] = true
		return noted, nil
	}
	s.guide(config)
}

// readingConn is a connection that only reads.
type readingConn struct {
	net.Conn
	servers *servers
}

// Close closes the connection.
func (c *readingConn) Close() error {
	c.servers.mutex.Lock()
	defer c.servers.mutex.Unlock()
	delete(c.servers.reading, c)
	return c.Conn.Close() //nolint:wrapcheck // It is the error of the connection.
}

// refuse closes a connection of a pool to a server that is passed over.
func (s *servers) refuse(_ context.Context, conn *pgx.Conn) error {
	if s.isPassedOver(conn.PgConn().Conn().RemoteAddr().String()) {
		return driver.ErrBadConn
	}
	return nil
}
