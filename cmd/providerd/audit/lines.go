package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"example.com/providerd/store"
)

const (
	// maxLine is the longest line in bytes, and maxLines the largest number of lines, which takes 400 MB.
	maxLine  = 16 << 20
	maxLines = 10_000_000
	// sumSize is the number of bytes that are kept of a hash.
	sumSize = 12
)

// sum is the beginning of a hash.
type sum [sumSize]byte

// kept is what is kept of a line in memory.
type kept struct {
	// key is that of the row in its table, and provider the pk.
	key, provider int64
	// event is the sum of the event without the leaf. leaf is zero if the leaf is not known.
	event, leaf sum
}

// keptOf returns what is kept of an event of a provider.
func keptOf(event store.Event) kept {
	text := fmt.Sprintf("%s %d %d %q %q %s %q %q %q", event.Event, event.ID, event.At.UnixMicro(), event.User,
		event.Fields, event.Kind, event.CreatedBy, event.RequestID, event.RemoteAddress)
	hash := sha256.Sum256([]byte(text))
	k := kept{key: event.Row.Key, provider: event.ID, event: sum(hash[:sumSize])}
	if event.Leaf != nil {
		copy(k.leaf[:], *event.Leaf)
	}
	return k
}

// tables are the events of providers, by table of the log, ordered by key.
type tables [store.LogChanges + 1][]kept

// readLines reads the events of providers in lines.
func readLines(from io.Reader) (read tables, err error) {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, maxLine)
	for number := 1; scanner.Scan(); number++ {
		line, isOfProvider, err := parseLine(scanner.Bytes())
		if number > maxLines {
			err = errors.New("too many lines")
		}
		if err != nil {
			return read, fmt.Errorf("--against: line %d is not a line of \"audit --output jsonl\": %w", number, err)
		}
		if isOfProvider {
			read[line.Row.Table] = append(read[line.Row.Table], keptOf(line.Event))
		}
	}
	if err := scanner.Err(); err != nil {
		return read, fmt.Errorf("--against: %w", err)
	}
	for _, table := range read {
		slices.SortStableFunc(table, func(a, b kept) int { return cmp.Compare(a.key, b.key) })
	}
	return read, nil
}

// parseLine parses a line, and reports whether it is of a provider.
func parseLine(text []byte) (line line, isOfProvider bool, err error) {
	if err := json.Unmarshal(uncut(text), &line); err != nil {
		return line, false, err //nolint:wrapcheck // The caller adds which line it is.
	}
	isOfProvider = line.setRow()
	switch {
	case line.Event.Event == "":
		return line, false, errors.New("it has no event")
	case isOfProvider && (!isKey(line.Row.Key) || !isKey(line.ID)):
		return line, false, errors.New("its key is out of range")
	default:
		return line, isOfProvider, nil
	}
}

// uncut returns the line without the part of a line before it that a kill has cut off.
func uncut(text []byte) []byte { return text[max(0, bytes.LastIndex(text, []byte(`{"at":`))):] }

// isKey reports whether a database can have generated a key.
func isKey(key int64) bool { return key >= 1 }

// setRow sets the row of the event. It returns false if it is not an event of a provider.
func (l *line) setRow() bool {
	changes := []store.EventKind{store.EventProviderUpdated, store.EventProviderRenamed, store.EventProviderDeleted}
	switch name := l.Event.Event; {
	case name == store.EventProviderCreated:
		l.Row = store.LogRow{Table: store.LogCreates, Key: l.ID}
	case slices.Contains(changes, name):
		l.Row = store.LogRow{Table: store.LogChanges, Key: l.Cursor[store.LogChanges]}
	default:
		return false
	}
	return true
}

// before and last return the cursors between which the lines are.
func (t tables) before() (cursor store.LogCursor) {
	for i, table := range t {
		if len(table) > 0 {
			cursor[i] = table[0].key - 1
		}
	}
	return cursor
}

// last returns the cursor of the last lines.
func (t tables) last() (cursor store.LogCursor) {
	for i, table := range t {
		if len(table) > 0 {
			cursor[i] = table[len(table)-1].key
		}
	}
	return cursor
}
