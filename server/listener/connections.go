package listener

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// writeBuffer is how many bytes of a response the kernel buffers if the caller does not read it.
const writeBuffer = 64 << 10

// connections is a listener with a limit on open connections. At the limit, one is closed to make room for a newcomer,
// by the first of these rules that applies:
//
//  1. the connection that has been idle longest, for at least Limits.Grace;
//  2. the connection that has gone longest without a valid token, for at least Limits.Grace;
//  3. the connection that has transferred the body or response of an authenticated caller longest, for at least
//     Limits.TransferGrace.
//
// Until one applies, the newcomer waits. A connection is never closed while a complete request is being handled. So
// no caller keeps others out by sending slowly, by sending nothing, or by not reading responses.
type connections struct {
	net.Listener
	limits Limits
	// security is nil without TLS.
	security *tls.Config
	// waits is true while a newcomer waits; freed wakes it.
	waits atomic.Bool
	freed chan struct{}
	mutex sync.Mutex
	// ended is true once no more newcomers are admitted.
	ended bool
	open  map[*Conn]bool
	// headers is how much memory is not reserved for headers.
	headers  int
	notedTLS time.Time
	logger   *slog.Logger
}

func limitConnections(listener net.Listener, limits Limits, security *tls.Config, logger *slog.Logger) *connections {
	return &connections{
		Listener: listener, limits: limits, security: security, freed: make(chan struct{}, 1), open: map[*Conn]bool{},
		headers: headerRoom, logger: logger,
	}
}

// Accept waits for the next connection, and then for a place.
func (c *connections) Accept() (net.Conn, error) {
	accepted, err := c.acceptAny()
	if err != nil {
		return nil, err
	}
	isProxy := c.limits.IsProxy
	newcomer := &Conn{
		Conn: accepted, raw: accepted, owner: c, isProxy: isProxy != nil && isProxy(accepted.RemoteAddr()),
	}
	if c.security != nil {
		newcomer.Conn = tls.Server(accepted, c.security)
	}
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

// acceptAny returns the next connection. If the process has too many open files, it makes room as at the limit.
func (c *connections) acceptAny() (net.Conn, error) {
	for {
		accepted, err := c.Listener.Accept()
		if plain, ok := accepted.(*net.TCPConn); ok {
			// With a larger buffer, progress would show too rarely. If this fails, so does the use of the connection.
			_ = plain.SetWriteBuffer(writeBuffer)
		}
		if !errors.Is(err, syscall.EMFILE) {
			return accepted, err //nolint:wrapcheck // The HTTP server looks at its type.
		}
		c.mutex.Lock()
		wait := c.makeRoom(0)
		c.mutex.Unlock()
		if wait > 0 {
			return nil, err //nolint:wrapcheck // As above: the server retries after this error.
		}
	}
}

// admit gives a newcomer a place. If there is none, it returns how long to wait. It returns net.ErrClosed after Close.
func (c *connections) admit(newcomer *Conn) (wait time.Duration, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.ended {
		return 0, net.ErrClosed
	}
	if len(c.open) >= c.limits.Connections {
		wait = c.makeRoom(0)
	}
	c.waits.Store(wait > 0)
	if wait == 0 {
		newcomer.since = time.Now()
		c.open[newcomer] = true
	}
	return wait, nil
}

// makeRoom closes a connection for a newcomer, or returns how long to wait until one may be closed. It considers those
// that have reserved this much for their headers. The caller holds the mutex.
func (c *connections) makeRoom(reserved int) time.Duration {
	var longest [working]*Conn
	for conn := range c.open {
		if conn.phase == working || conn.reserved < reserved {
			continue
		}
		if first := longest[conn.phase]; first == nil || conn.since.Before(first.since) {
			longest[conn.phase] = conn
		}
	}
	grace := c.limits.Grace
	graces := [working]time.Duration{idle: grace, unknown: grace, transferring: c.limits.TransferGrace}
	wait := grace
	for phase, victim := range longest {
		if victim == nil {
			continue
		}
		left := graces[phase] - time.Since(victim.since)
		if left <= 0 {
			victim.abort()
			return 0
		}
		wait = min(wait, left)
	}
	return wait
}

// reserveHeader reserves memory for the header that a connection reads, and reports whether there is enough. If there
// is not, it first closes connections with long headers, by the rules for newcomers. The caller holds the mutex.
func (c *connections) reserveHeader(conn *Conn) bool {
	more := conn.header.excess() - conn.reserved
	for c.open[conn] && more > c.headers {
		if c.makeRoom(1) > 0 {
			return false
		}
	}
	// A connection that was closed has released its memory for good.
	if more > 0 && c.open[conn] {
		c.headers, conn.reserved = c.headers-more, conn.reserved+more
	}
	return true
}

// releaseHeader releases what reserveHeader reserved. The caller holds the mutex.
func (c *connections) releaseHeader(conn *Conn) {
	c.headers, conn.reserved = c.headers+conn.reserved, 0
}

// release frees the place of a connection, once. The caller holds the mutex.
func (c *connections) release(conn *Conn) {
	if c.open[conn] {
		delete(c.open, conn)
		c.releaseHeader(conn)
		c.wake()
	}
}

// wake makes a waiting newcomer try again.
func (c *connections) wake() {
	select {
	case c.freed <- struct{}{}:
	default:
	}
}

// context adds the connection to the context of its requests.
func (c *connections) context(ctx context.Context, served net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, served.(*Conn))
}

// stateChanged is called by the HTTP server when the state of a connection changes.
func (c *connections) stateChanged(served net.Conn, state http.ConnState) {
	conn := served.(*Conn)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch {
	case state == http.StateIdle:
		conn.header.begin()
		c.releaseHeader(conn)
		conn.enter(idle)
		conn.becameIdle = conn.isProxy
	case state == http.StateActive && conn.phase == idle:
		conn.enter(unknown)
	}
}

// closeWhileWaiting closes connections after responses while a newcomer waits, so that no request meets a closed one.
func (c *connections) closeWhileWaiting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The header of a pipelined request may have been read with the previous one.
		conn := FromContext(r.Context())
		conn.header.isComplete.Store(true)
		r.TLS = conn.security()
		isTooLong := hasTooManyLines(r)
		if isTooLong || c.waits.Load() {
			w.Header().Set("Connection", "close")
		}
		if isTooLong {
			http.Error(w, tooLong, http.StatusRequestHeaderFieldsTooLarge)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Close closes the listener. No more newcomers are admitted.
func (c *connections) Close() error {
	c.mutex.Lock()
	c.ended = true
	c.mutex.Unlock()
	c.wake()
	return c.Listener.Close() //nolint:wrapcheck // It is the listener's own.
}
