package listener

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
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

// progressBytes is how much must be transferred to count as progress, so that a trickle does not. No more is written
// at a time.
const progressBytes = 16 << 10

// Conn is one of the connections that Serve has open.
type Conn struct {
	net.Conn
	owner *connections
	// The mutex of the owner guards what follows: the phase, and since when it lasts.
	phase phase
	since time.Time
	// progress is when the connection last made some in this phase, and transferred how many bytes it has read and
	// written since then.
	progress    time.Time
	transferred int
}

type connectionKey struct{}

// connectionOf returns the connection that the HTTP server serves, perhaps inside of TLS.
func connectionOf(served net.Conn) *Conn {
	if secured, ok := served.(*tls.Conn); ok {
		served = secured.NetConn()
	}
	return served.(*Conn)
}

// FromContext returns the connection of a request; nil if it came in any other way.
func FromContext(ctx context.Context) *Conn {
	conn, _ := ctx.Value(connectionKey{}).(*Conn)
	return conn
}

// MarkTransferring notes that the caller of a request is known, and sends its body or takes its answer from now on.
func MarkTransferring(ctx context.Context) { enterPhase(ctx, transferring) }

// MarkWorking notes that the request of a known caller has arrived whole, and is worked on from now on.
func MarkWorking(ctx context.Context) { enterPhase(ctx, working) }

// enterPhase notes what the connection of a request is at from now on.
func enterPhase(ctx context.Context, next phase) {
	if conn := FromContext(ctx); conn != nil {
		conn.owner.mutex.Lock()
		defer conn.owner.mutex.Unlock()
		conn.enter(next)
	}
}

// Read notes that something comes. It makes an idle connection one of an unknown caller.
func (c *Conn) Read(into []byte) (int, error) {
	count, err := c.Conn.Read(into)
	if count > 0 {
		c.owner.mutex.Lock()
		defer c.owner.mutex.Unlock()
		if c.phase == idle {
			c.enter(unknown)
		}
		c.advance(count)
	}
	return count, err //nolint:wrapcheck // The HTTP server looks at its type.
}

// Write notes the progress of what is too long for the buffers.
func (c *Conn) Write(text []byte) (written int, err error) {
	for piece := range slices.Chunk(text, progressBytes) {
		count, err := c.Conn.Write(piece)
		written += count
		if err != nil {
			return written, err //nolint:wrapcheck // The HTTP server looks at its type.
		}
		if count == progressBytes {
			c.owner.mutex.Lock()
			c.advance(count)
			c.owner.mutex.Unlock()
		}
	}
	return written, nil
}

// Close releases the place.
func (c *Conn) Close() error {
	c.owner.mutex.Lock()
	c.owner.release(c)
	c.owner.mutex.Unlock()
	return c.Conn.Close() //nolint:wrapcheck // It is the connection's own.
}

// enter begins a phase, or restarts the same one. The caller holds the mutex.
func (c *Conn) enter(next phase) {
	c.phase, c.since = next, time.Now()
	c.progress, c.transferred = c.since, 0
}

// advance counts what was transferred. The caller holds the mutex.
func (c *Conn) advance(count int) {
	if c.transferred += count; c.transferred >= progressBytes {
		c.progress, c.transferred = time.Now(), 0
	}
}

// StalledFor is how long a transfer has made no progress.
func (c *Conn) StalledFor() time.Duration {
	c.owner.mutex.Lock()
	defer c.owner.mutex.Unlock()
	if c.phase != transferring {
		return 0
	}
	return time.Since(c.progress)
}
