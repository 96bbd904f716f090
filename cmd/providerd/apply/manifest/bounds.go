package manifest

import (
	"fmt"
	"strings"
)

// Bounds of what is made of all files together. Aliases could otherwise multiply a short file without end.
const (
	maxValues = 2_000_000
	maxBytes  = 128 << 20
	// maxLineValues bounds one line, of which the parser keeps a kilobyte for each value.
	maxLineValues = 200_000
	// MaxProblems is how many faults are told.
	MaxProblems = 10_000
)

// maxEntryBytes is the length of the longest body that a server takes.
const maxEntryBytes = 1 << 20

// usage counts what was made of the files so far.
type usage struct {
	nodes, lineNodes, values, bytes, faults int
}

// countNodes counts what usually begins a value in YAML, before a parser makes a hundred times its length of it. It
// returns the line at which there are too many, or 0.
func (u *usage) countNodes(text []byte) (line int) {
	line, u.lineNodes = 1, 0
	last := byte('\n')
	for _, char := range text {
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

// isOver tells whether nothing more may be read.
func (u *usage) isOver() bool {
	return u.nodes > maxValues || u.lineNodes > maxLineValues || u.values > maxValues || u.bytes > maxBytes ||
		u.faults >= MaxProblems
}

// excess says which bound but that of faults was passed; it is empty where none was.
func (u *usage) excess() string {
	const end = ", all files up to here and what aliases repeat counted; apply fewer entries at a time"
	switch {
	case u.lineNodes > maxLineValues:
		return fmt.Sprintf("has more than %d values in one line; write each entry in lines of its own", maxLineValues)
	case u.nodes > maxValues || u.values > maxValues:
		return fmt.Sprintf("has more than %d values%s", maxValues, end)
	case u.bytes > maxBytes:
		return fmt.Sprintf("has more than %d MiB%s", maxBytes>>20, end)
	default:
		return ""
	}
}
