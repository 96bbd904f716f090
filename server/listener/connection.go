package listener

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"time"
)

type phase int

const (
	// idle connections have sent nothing since they were accepted or since their last response.
	idle phase = iota
	// unknown connections have sent something, but no valid token.
	unknown
	// transferring connections have an authenticated caller that sends a body or reads a response.
	transferring
	// working connections have sent a complete request with a valid token, and are not closed before the response.
	working
)

// progressBytes must be transferred to count as progress, so that a trickle does not. No more is written at a time.
const progressBytes = 16 << 10

const (
	// bufferSize is what net/http reads ahead at most.
	bufferSize = 4 << 10
	// maxReadAhead is how much of the next request may be read with the end of another, because its lines are not counted.
	maxReadAhead = 1 << 10
)

// Conn is one of the connections that Serve has open.
type Conn struct {
	// Conn is raw, or TLS over it.
	net.Conn
	raw   net.Conn
	owner *connections
	// header counts the fields that are being read.
	header header
	// hasNoReadDeadline is what SetReadDeadline was called with last.
	hasNoReadDeadline atomic.Bool
	// isProxy is true if the peer is a proxy, and becameIdle if its next deadline is that of an idle connection.
	isProxy, becameIdle bool
	// The mutex of the owner guards the rest: the memory reserved for the header, the phase, and when that began.
	reserved int
	phase    phase
	since    time.Time
	// progress is when the connection last made progress in this phase, and transferred how many bytes it has since.
	progress    time.Time
	transferred int
}

type connectionKey struct{}

func (c *Conn) security() *tls.ConnectionState {
	secured, ok := c.Conn.(*tls.Conn)
	if !ok {
		return nil
	}
	state := secured.ConnectionState()
	return &state
}

// FromContext returns the connection of a request; nil if Serve did not accept it.
func FromContext(ctx context.Context) *Conn {
	conn, _ := ctx.Value(connectionKey{}).(*Conn)
	return conn
}

// MarkTransferring marks that the caller of a request is authenticated, and sends its body or reads the response.
func MarkTransferring(ctx context.Context) { _ = enterPhase(ctx, transferring) }

// MarkWorking marks that the request of an authenticated caller is complete and being handled. It returns net.ErrClosed
// if the connection has been closed for a newcomer, so that the caller could not get the response.
func MarkWorking(ctx context.Context) error { return enterPhase(ctx, working) }

// enterPhase changes the phase of the connection of a request. It returns net.ErrClosed if the connection is closed.
func enterPhase(ctx context.Context, next phase) error {
	conn := FromContext(ctx)
	if conn == nil {
		return nil
	}
	conn.owner.mutex.Lock()
	defer conn.owner.mutex.Unlock()
	conn.enter(next)
	if !conn.owner.open[conn] {
		return net.ErrClosed
	}
	return nil
}

// SetReadDeadline sets the deadline of reads, including one in progress.
func (c *Conn) SetReadDeadline(at time.Time) error {
	c.hasNoReadDeadline.Store(at.IsZero())
	if c.becameIdle {
		c.becameIdle, at = false, time.Now().Add(c.owner.limits.ProxyIdleTimeout)
	}
	return c.Conn.SetReadDeadline(at) //nolint:wrapcheck // It is the connection's own.
}

// Read reads from the connection and counts progress. The first bytes make an idle connection unknown.
//
// While a request is handled, net/http reads one byte without a deadline, to notice that the caller has disconnected.
// That takes a twentieth of the CPU of a create, and a complete request is carried out anyway. So this read gets
// nothing instead of waiting, unless Limits.NoticeHangUps is set or the connection has TLS. All other reads have a
// deadline. TestNetHTTPWatchesConnectionsWithOneByte checks that net/http still does this.
func (c *Conn) Read(into []byte) (int, error) {
	isPlain := c.owner.security == nil
	if len(into) == 1 && isPlain && !c.owner.limits.NoticeHangUps && c.hasNoReadDeadline.Load() {
		return 0, nil
	}
	if len(into) <= bufferSize {
		into = into[:min(len(into), maxReadAhead)]
	}
	count, err := c.Conn.Read(into)
	if wrong, ok := errors.AsType[tls.RecordHeaderError](err); ok && wrong.Conn != nil {
		refusePlain(wrong)
	}
	if count > 0 {
		c.noteTLS(into[0])
		if c.header.read(into[:count]) {
			return 0, c.refuse(tooLong, "")
		}
		if !c.arrive(count) {
			return 0, c.refuse(noRoom, "Retry-After: 1\r\n")
		}
	}
	return count, err //nolint:wrapcheck // The HTTP server looks at its type.
}

// arrive counts bytes that were read, and reports whether there is memory for the header that is being read.
func (c *Conn) arrive(count int) (hasRoom bool) {
	c.owner.mutex.Lock()
	defer c.owner.mutex.Unlock()
	if c.phase == idle {
		c.enter(unknown)
	}
	c.advance(count)
	return c.owner.reserveHeader(c)
}

// Write writes to the connection in pieces and counts progress, which shows only if the data exceeds the buffers.
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

// noteTLS logs, at most once a minute, that the first byte of a request is that of TLS, which the listener lacks.
func (c *Conn) noteTLS(first byte) {
	const handshake = 22 // RFC 8446, section 5.1
	if c.owner.security != nil || c.header.bytes > 0 || first != handshake {
		return
	}
	c.owner.mutex.Lock()
	defer c.owner.mutex.Unlock()
	if now := time.Now(); now.Sub(c.owner.notedTLS) >= time.Minute {
		c.owner.notedTLS = now
		c.owner.logger.Warn("refused TLS on a port without it; use an http:// URL, or serve with --tls-cert and --tls-key",
			slog.String("remote", c.RemoteAddr().String()))
	}
}

// refusePlain answers HTTP without TLS, as net/http does.
func refusePlain(wrong tls.RecordHeaderError) {
	switch string(wrong.RecordHeader[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		_, _ = io.WriteString(wrong.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
	}
}

// Abort closes the connection without the close_notify of TLS (RFC 8446, section 6.1), which would wait for the caller.
func (c *Conn) Abort() {
	c.owner.mutex.Lock()
	defer c.owner.mutex.Unlock()
	c.abort()
}

// abort requires the mutex of the owner.
func (c *Conn) abort() {
	c.owner.release(c)
	_ = c.raw.Close()
}

// Close closes the connection, which makes room for another.
func (c *Conn) Close() error {
	c.owner.mutex.Lock()
	c.owner.release(c)
	c.owner.mutex.Unlock()
	return c.Conn.Close() //nolint:wrapcheck // It is the connection's own.
}

// enter begins a phase, or restarts the current one. The caller holds the mutex.
func (c *Conn) enter(next phase) {
	c.phase, c.since = next, time.Now()
	c.progress, c.transferred = c.since, 0
}

// yield makes the connection, which is refused, the first that is closed for a newcomer.
func (c *Conn) yield() {
	c.owner.mutex.Lock()
	defer c.owner.mutex.Unlock()
	c.owner.releaseHeader(c)
	c.phase, c.since = idle, time.Time{}
}

// advance counts transferred bytes. The caller holds the mutex.
func (c *Conn) advance(count int) {
	if c.transferred += count; c.transferred >= progressBytes {
		c.progress, c.transferred = time.Now(), 0
	}
}

// StalledFor returns how long a transfer has made no progress; 0 in other phases.
func (c *Conn) StalledFor() time.Duration {
	c.owner.mutex.Lock()
	defer c.owner.mutex.Unlock()
	if c.phase != transferring {
		return 0
	}
	return time.Since(c.progress)
}
