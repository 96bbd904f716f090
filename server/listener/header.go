package listener

import (
	"cmp"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// maxLines is how many lines the request line and the header may have; a header of 16 KiB can have 4,000 fields.
	maxLines = 256
	// lineCost is what a line takes in memory, up to, in addition to its bytes.
	lineCost = 100
	// freeHeader is how much memory a header may take without a reservation: more than most take, but so little that the
	// limit on connections alone bounds it. headerRoom is how much more all headers together may take.
	freeHeader = 4 << 10
	headerRoom = 16 << 20
)

// header counts the bytes and lines of a request up to its body. Only one goroutine at a time reads a connection.
type header struct {
	bytes, lines int
	// hasText is true within a line that is not empty.
	hasText bool
	// isComplete is true after the empty line that ends the header. The handler sets it too, while net/http reads.
	isComplete atomic.Bool
}

// begin expects the header of the next request.
func (h *header) begin() {
	h.bytes, h.lines, h.hasText = 0, 0, false
	h.isComplete.Store(false)
}

// excess is how much memory the header takes beyond what is free.
func (h *header) excess() int { return max(0, h.bytes+h.lines*lineCost-freeHeader) }

// read counts a piece of the request, and reports whether there are too many. A pipelined request may
// begin in a piece that was read before, so that lines of its body may be counted.
func (h *header) read(piece []byte) (isTooLong bool) {
	if h.isComplete.Load() {
		return false
	}
	for _, char := range piece {
		h.bytes++
		switch {
		case char != '\n':
			h.hasText = h.hasText || char != '\r'
		case h.hasText:
			h.hasText = false
			if h.lines++; h.lines > maxLines {
				return true
			}
		case h.lines > 0: // Empty lines before the request line are ignored.
			h.isComplete.Store(true)
			return false
		}
	}
	return false
}

const (
	// tooLong is the response of net/http to a header that is too long, and noRoom the response to one that does not fit.
	tooLong = "431 Request Header Fields Too Large"
	noRoom  = "503 Service Unavailable"
)

// lingerTime is how long net/http keeps a connection open after this response, which an earlier close could discard.
const lingerTime = 500 * time.Millisecond

// refuse sends a response, and returns an error that closes the connection without another. What follows is not read.
func (c *Conn) refuse(status, fields string) error {
	c.yield()
	_, err := io.WriteString(c.Conn, "HTTP/1.1 "+status+"\r\nContent-Type: text/plain; charset=utf-8\r\n"+fields+
		"Connection: close\r\n\r\n"+status)
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
		<-time.After(lingerTime)
	}
	return &net.OpError{Op: "read", Net: "tcp", Err: cmp.Or(err, errors.New(status))}
}

// hasTooManyLines counts the lines of a header, for those that were read in a piece with the previous request.
func hasTooManyLines(r *http.Request) bool {
	const requestLineAndHost = 2
	lines := requestLineAndHost
	for _, values := range r.Header {
		lines += len(values)
	}
	return lines > maxLines
}
