package manifest

import (
	"bytes"
	"fmt"
	"strings"
)

// Limits for all files together. Without them, aliases could expand a short file indefinitely.
const (
	maxValues = 2_000_000
	maxBytes  = 128 << 20
	// maxLineValues limits the values in one line, for each of which the parser needs a kilobyte.
	maxLineValues = 200_000
	// MaxProblems is the largest number of problems that are reported.
	MaxProblems = 10_000
)

// maxEntryBytes is the length of the longest body that a server accepts.
const maxEntryBytes = 1 << 20

// usage counts what was read from the files so far.
type usage struct {
	nodes, lineNodes, values, bytes, problems int
}

// countNodes estimates the number of values in a file before it is parsed, because the parser needs a hundred times the
// length of the text. It returns the line at which there are too many, or 0.
func (u *usage) countNodes(text []byte) (line int) {
	line, u.lineNodes = 1, 0
	last := byte('\n')
	for i, char := range text {
		if isLineBreak(text, i) {
			char = '\n'
		}
		if isIndicator := last == '-' || last == '?'; strings.IndexByte("\n,[{", char) >= 0 || char == ' ' && isIndicator {
			u.nodes++
			u.lineNodes++
		}
		if u.isOver() {
			return line
		}
		if char == '\n' {
			line++
			u.lineNodes = 0
		}
		last = char
	}
	return 0
}

// isLineBreak reports whether a character that is not a line feed, and ends at an index, is a line break in YAML: CR,
// NEL, LS or PS.
func isLineBreak(text []byte, index int) bool {
	end := text[max(index-2, 0) : index+1]
	switch text[index] {
	case '\r':
		return index+1 == len(text) || text[index+1] != '\n'
	case 0x85:
		return bytes.HasSuffix(end, []byte("\u0085"))
	case 0xa8, 0xa9:
		return bytes.HasPrefix(end, []byte("\xe2\x80"))
	default:
		return false
	}
}

// isOver reports whether a limit was exceeded.
func (u *usage) isOver() bool {
	return u.nodes > maxValues || u.lineNodes > maxLineValues || u.values > maxValues || u.bytes > maxBytes ||
		u.problems >= MaxProblems
}

// excess describes the limit that was exceeded, except that of problems; "" if none was.
func (u *usage) excess() string {
	const end = " in all files up to here, with aliases expanded; apply fewer entries at a time"
	switch {
	case u.lineNodes > maxLineValues:
		return fmt.Sprintf("has more than %d values in one line; write one entry per line", maxLineValues)
	case u.nodes > maxValues || u.values > maxValues:
		return fmt.Sprintf("has more than %d values%s", maxValues, end)
	case u.bytes > maxBytes:
		return fmt.Sprintf("has more than %d MiB%s", maxBytes>>20, end)
	default:
		return ""
	}
}
