package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"time"
)

// connection is one of connections.
type connection struct {
	net.Conn
	owner *connections
	// The mutex of the owner guards what follows. queue is one of the owner's, or nil while a request of a known caller is
	// worked on; place is that in the queue, which it has since a time.
	queue *list.List
	place *list.Element
	since time.Time
	// released tells that the connection was closed, by its caller, the HTTP server or for a newcomer.
	released bool
}

type connectionKey struct{}

// connectionOf returns the connection that the HTTP server serves, perhaps inside of TLS.
func connectionOf(served net.Conn) *connection {
	if secured, ok := served.(*tls.Conn); ok {
		served = secured.NetConn()
	}
	return served.(*connection)
}

// transfers is called when a caller who is known begins to send a body, or to take an answer.
func transfers(ctx context.Context) {
	if one, ok := ctx.Value(connectionKey{}).(*connection); ok {
		one.enter(one.owner.transferring)
	}
}

// keepPlace is called when the request of a caller who is known has arrived: its connection keeps its place until the
// answer.
func keepPlace(ctx context.Context) {
	if one, ok := ctx.Value(connectionKey{}).(*connection); ok {
		one.enter(nil)
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
	if c.queue == c.owner.idle {
		c.move(c.owner.unknown)
	}
}

// enter puts the connection at the end of a queue, or in none.
func (c *connection) enter(queue *list.List) {
	c.owner.mutex.Lock()
	defer c.owner.mutex.Unlock()
	c.move(queue)
}

// move is enter for who holds the mutex. A connection that was released stays out.
func (c *connection) move(queue *list.List) {
	if c.released {
		return
	}
	if c.queue != nil {
		c.queue.Remove(c.place)
	}
	if c.queue = queue; queue != nil {
		c.place, c.since = queue.PushBack(c), time.Now()
	}
}
