package manifest

import (
	"bytes"
	"fmt"
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
	nodes, values, bytes, problems int
}

// countNodes estimates the number of values in a file before it is parsed, because the parser needs a hundred times the
// length of the text. It returns the line at which there are too many, and what to say; "" if there are not.
func (u *usage) countNodes(text []byte) (line int, detail string) {
	for part := range bytes.Lines(text) {
		line++
		count := -bytes.Count(part, []byte("\r\n"))
		for _, indicator := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029", ",", "[", "{", "- ", "? "} {
			count += bytes.Count(part, []byte(indicator))
		}
		if count > maxLineValues {
			return line, fmt.Sprintf("has more than %d values on one line; write one entry per line", maxLineValues)
		}
		if u.nodes += count; u.isOver() {
			return line, u.excess()
		}
	}
	return 0, ""
}

func (u *usage) isOver() bool {
	return u.nodes > maxValues || u.values > maxValues || u.bytes > maxBytes || u.problems >= MaxProblems
}

// excess describes the exceeded limit, unless it is the limit of problems; "" if none was.
func (u *usage) excess() string {
	const end = " for all files together, with aliases expanded; apply fewer entries at a time"
	switch {
	case u.nodes > maxValues || u.values > maxValues:
		return fmt.Sprintf("exceeds the limit of %d values%s", maxValues, end)
	case u.bytes > maxBytes:
		return fmt.Sprintf("exceeds the limit of %d MiB%s", maxBytes>>20, end)
	default:
		return ""
	}
}
