package listener

import (
	"cmp"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// maxLines is how many lines the request line and the header may have. In memory, a field takes up to a hundred bytes
// more than in the request, and a header of 16 KiB can have 4,000 fields.
const maxLines = 256

// header counts the lines of a request up to its body. Only one goroutine at a time reads a connection.
type header struct {
	lines int
	// hasText is true within a line that is not empty, and isComplete after the empty line that ends the header.
	hasText, isComplete bool
}

// begin expects the header of the next request.
func (h *header) begin() { h.lines, h.hasText, h.isComplete = 0, false, false }

// read counts the lines in a piece of the request, and reports whether there are too many. A pipelined request may
// begin in a piece that was read before, so that lines of its body may be counted.
func (h *header) read(piece []byte) (isTooLong bool) {
	if h.isComplete {
		return false
	}
	for _, char := range piece {
		switch {
		case char != '\n':
			h.hasText = h.hasText || char != '\r'
		case h.hasText:
			h.hasText = false
			if h.lines++; h.lines > maxLines {
				return true
			}
		case h.lines > 0: // Empty lines before the request line are ignored.
			h.isComplete = true
			return false
		}
	}
	return false
}

// tooLong is the response of net/http to a header that is too long.
const tooLong = "431 Request Header Fields Too Large"

// lingerTime is how long a connection stays open after this response, as in net/http: closing it at once could discard
// the response.
const lingerTime = 500 * time.Millisecond

// refuse sends the response, and returns an error that makes net/http close the connection without another one. Nothing
// that follows is read, because it could be taken for a request.
func (c *Conn) refuse() error {
	_, err := io.WriteString(c.Conn, "HTTP/1.1 "+tooLong+"\r\nContent-Type: text/plain; charset=utf-8\r\n"+
		"Connection: close\r\n\r\n"+tooLong)
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
		<-time.After(lingerTime)
	}
	return &net.OpError{Op: "read", Net: "tcp", Err: cmp.Or(err, errors.New(tooLong))}
}

// hasTooManyLines counts the lines of a header that was read, for those that the connection did not see, in a piece
// that was read with the request before.
func hasTooManyLines(r *http.Request) bool {
	const requestLineAndHost = 2
	lines := requestLineAndHost
	for _, values := range r.Header {
		lines += len(values)
	}
	return lines > maxLines
}
