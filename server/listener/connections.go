package listener

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// grace is how long a connection keeps its place when a newcomer wants it, though nobody has shown a token on it: long
// enough for a request to come and be answered, short enough to be waited for.
const grace = 500 * time.Millisecond

// writeBuffer is how many bytes the kernel takes of a response that the caller does not read.
const writeBuffer = 64 << 10

// connections is a listener that has a bounded number of connections open. At the limit, a connection is closed to make
// room for a newcomer, the first that applies of: the one that has been idle longest, and the one whose caller has been
// unknown longest, either for at least grace; the one that has transferred a body or a response of a known caller
// longest, for at least a longer grace. Until one applies, the newcomer waits. Only a connection on which a request of
// a known caller is worked on keeps its place. So nobody keeps others out by sending slowly or nothing, or by not
// reading responses.
type connections struct {
	net.Listener
	limit int
	// transferGrace is that of connections that transfer.
	transferGrace time.Duration
	// waits is true while a newcomer waits; freed gets a value when it should try again.
	waits atomic.Bool
	freed chan struct{}
	mutex sync.Mutex
	// ended is true once no newcomer is admitted any more.
	ended bool
	open  map[*Conn]bool
}

func limitConnections(listener net.Listener, limit int, transferGrace time.Duration) *connections {
	return &connections{
		Listener: listener, limit: limit, transferGrace: transferGrace,
		freed: make(chan struct{}, 1), open: map[*Conn]bool{},
	}
}

// Accept returns the next connection, once there is a place for it.
func (c *connections) Accept() (net.Conn, error) {
	accepted, err := c.acceptAny()
	if err != nil {
		return nil, err
	}
	newcomer := &Conn{Conn: accepted, owner: c}
	for {
		wait, err := c.admit(newcomer)
		if err != nil {
			return nil, errors.Join(err, accepted.Close())
		}
		if wait == 0 {
			return newcomer, nil
		}
		select {
		case <-c.freed:
		case <-time.After(wait):
		}
	}
}

// acceptAny returns the next connection. If the process may open no more files, room is made as at the limit.
func (c *connections) acceptAny() (net.Conn, error) {
	for {
		accepted, err := c.Listener.Accept()
		if plain, ok := accepted.(*net.TCPConn); ok {
			// With more, the progress of a long response would show too seldom. What fails here fails in use, too.
			_ = plain.SetWriteBuffer(writeBuffer)
		}
		if !errors.Is(err, syscall.EMFILE) {
			return accepted, err //nolint:wrapcheck // The HTTP server looks at its type.
		}
		c.mutex.Lock()
		wait := c.makeRoom()
		c.mutex.Unlock()
		if wait > 0 {
			return nil, err //nolint:wrapcheck // As above: this one lets it try again later.
		}
	}
}

// admit gives a newcomer a place. It returns how long to wait if there is none yet, and an error if there will be none.
func (c *connections) admit(newcomer *Conn) (wait time.Duration, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.ended {
		return 0, net.ErrClosed
	}
	if len(c.open) >= c.limit {
		wait = c.makeRoom()
	}
	c.waits.Store(wait > 0)
	if wait == 0 {
		newcomer.since = time.Now()
		c.open[newcomer] = true
	}
	return wait, nil
}

// makeRoom closes the connection whose place a newcomer may have. It returns how long to wait if there is none yet.
// The caller holds the mutex.
func (c *connections) makeRoom() time.Duration {
	var longest [working]*Conn
	for conn := range c.open {
		if conn.phase < working && (longest[conn.phase] == nil || conn.since.Before(longest[conn.phase].since)) {
			longest[conn.phase] = conn
		}
	}
	graces := [working]time.Duration{idle: grace, unknown: grace, transferring: c.transferGrace}
	wait := grace
	for phase, victim := range longest {
		if victim == nil {
			continue
		}
		left := graces[phase] - time.Since(victim.since)
		if left <= 0 {
			c.release(victim)
			_ = victim.Conn.Close()
			return 0
		}
		wait = min(wait, left)
	}
	return wait
}

// release frees the place of a connection, once. The caller holds the mutex.
func (c *connections) release(conn *Conn) {
	if c.open[conn] {
		delete(c.open, conn)
		c.wake()
	}
}

// wake lets a waiting newcomer try again.
func (c *connections) wake() {
	select {
	case c.freed <- struct{}{}:
	default:
	}
}

// context lets the requests of a connection find it.
func (c *connections) context(ctx context.Context, served net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, connectionOf(served))
}

// note is told by the HTTP server what it does with a connection.
func (c *connections) note(served net.Conn, state http.ConnState) {
	conn := connectionOf(served)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch {
	case state == http.StateIdle:
		conn.enter(idle)
	case state == http.StateActive && conn.phase == idle:
		conn.enter(unknown)
	}
}

// yielding lets connections end with their next answers while a newcomer waits, so that none is closed just when its
// caller sends the next request.
func (c *connections) yielding(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.waits.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// Close admits no more newcomers.
func (c *connections) Close() error {
	c.mutex.Lock()
	c.ended = true
	c.mutex.Unlock()
	c.wake()
	return c.Listener.Close() //nolint:wrapcheck // It is the listener's own.
}
