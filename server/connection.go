package server

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// phase is what a connection is at.
type phase int

const (
	// idle connections have sent nothing since they were accepted or answered.
	idle phase = iota
	// unknown ones have sent something, but no valid token.
	unknown
	// transferring ones have a known caller, who sends a body or takes an answer.
	transferring
	// working ones have the whole request of a known caller, and keep their place until the answer.
	working
)

// connection is one of connections.
type connection struct {
	net.Conn
	owner *connections
	// The mutex of the owner guards what follows: the phase, and since when it lasts.
	phase phase
	since time.Time
}

type connectionKey struct{}

// connectionOf returns the connection that the HTTP server serves, perhaps inside of TLS.
func connectionOf(served net.Conn) *connection {
	if secured, ok := served.(*tls.Conn); ok {
		served = secured.NetConn()
	}
	return served.(*connection)
}

// enterPhase notes what the connection of a request is at from now on.
func enterPhase(ctx context.Context, next phase) {
	if one, ok := ctx.Value(connectionKey{}).(*connection); ok {
		one.enter(next)
	}
}

// Read notes that something comes.
func (c *connection) Read(into []byte) (int, error) {
	count, err := c.Conn.Read(into)
	if count > 0 {
		c.hear()
	}
	return count, err //nolint:wrapcheck // The HTTP server looks at its type.
}

// Close gives the place back.
func (c *connection) Close() error {
	c.owner.mutex.Lock()
	c.owner.release(c)
	c.owner.mutex.Unlock()
	return c.Conn.Close() //nolint:wrapcheck // It is the connection's own.
}

// hear makes an idle connection one of an unknown caller.
func (c *connection) hear() {
	c.owner.mutex.Lock()
	defer c.owner.mutex.Unlock()
	if c.phase == idle {
		c.phase, c.since = unknown, time.Now()
	}
}

// enter begins a phase, or the same one anew.
func (c *connection) enter(next phase) {
	c.owner.mutex.Lock()
	defer c.owner.mutex.Unlock()
	c.phase, c.since = next, time.Now()
}
