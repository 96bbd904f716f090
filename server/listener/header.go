package listener

// maxLines is how many lines the request line and the header may have. In memory, a field takes up to a hundred bytes
// more than in the request, and a header of 16 KiB can have 4,000 fields.
const maxLines = 256

// header counts the lines of a request up to its body. Only one goroutine at a time reads a connection.
type header struct {
	// isHidden is true within TLS, where the connection does not see the lines.
	isHidden bool
	lines    int
	// hasText is true within a line that is not empty, and isComplete after the empty line that ends the header.
	hasText, isComplete bool
}

// begin expects the header of the next request.
func (h *header) begin() { h.lines, h.hasText, h.isComplete = 0, false, false }

// read counts the lines in a piece of the request. What follows too many becomes a line that does not end, which
// net/http refuses with 431 when it exceeds its limit.
func (h *header) read(piece []byte) {
	if h.isHidden || h.isComplete {
		return
	}
	for i, char := range piece {
		switch {
		case h.lines > maxLines:
			piece[i] = 'x'
		case char != '\n':
			h.hasText = h.hasText || char != '\r'
		case h.hasText:
			h.lines++
			h.hasText = false
		case h.lines > 0: // Empty lines before the request line are ignored.
			h.isComplete = true
			return
		}
	}
}

func (h *header) isTooLong() bool { return h.lines > maxLines }
