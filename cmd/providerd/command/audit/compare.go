package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store/audit"
	"example.com/providerd/store/event"
)

type difference struct {
	Provider int64  `json:"provider,omitempty"`
	Token    int64  `json:"token,omitempty"`
	Event    int64  `json:"event,omitempty"`
	Finding  string `json:"finding"`
}

func (d difference) rows() [][]string {
	cells := []string{"", "", "", d.Finding}
	for i, number := range []int64{d.Provider, d.Token, d.Event} {
		if number != 0 {
			cells[i] = fmt.Sprint(number)
		}
	}
	return [][]string{cells}
}

// maxDifferences limits the differences in memory. Further ones are only counted.
const maxDifferences = 10_000

type comparison struct {
	messages *console.Messages
	// database is the ID of the store.
	database uint32
	// lines is the number of lines, and incomparable that of lines whose record could not be compared.
	lines, incomparable int
	// first and last are the lowest and the highest id of a line. unlisted is the number of records that have no line.
	first, last, unlisted int64
	differences           []difference
	count                 int
}

func (c *comparison) found(event event.Event, format string, values ...any) {
	found := difference{Event: event.ID, Finding: fmt.Sprintf(format, values...)}
	switch event.About() {
	case "provider":
		found.Provider = event.Subject
	case "token":
		found.Token = event.Subject
	}
	if c.count++; c.count <= maxDifferences {
		c.differences = append(c.differences, found)
	}
}

// compare compares lines, which can be repeated, with the log, of which logAfter returns the part after an id.
func (c *comparison) compare(
	lines iter.Seq2[audit.Entry, error], logAfter func(id int64) iter.Seq2[audit.Entry, error],
) error {
	var log logReader
	for line, err := range lines {
		if err != nil {
			return err
		}
		if c.lines++; c.lines == 1 {
			next, stop := iter.Pull2(logAfter(line.ID - 1))
			defer stop()
			log, c.first = logReader{next: next}, line.ID
			log.advance()
		}
		if line.Database != c.database {
			return fmt.Errorf("line %d is from another database, or the digest key was replaced; pass the lines of one "+
				"database, and that database with --database", c.lines)
		}
		if line.ID < c.first {
			return fmt.Errorf("event %d comes after event %d; pass the lines in the order in which they were printed",
				line.ID, c.first)
		}
		if line.ID > c.last {
			c.last = line.ID
			if log.err == nil && haveParted(line.Event, log.entry.Event) {
				c.part(line)
				return nil
			}
			c.compareLine(line, &log)
		}
		if log.err != nil {
			return log.err
		}
	}
	return nil
}

// unrecorded is the finding for a digest that differs.
const unrecorded = "was changed without an event"

// part adds that a line and the log have parted. Digests of earlier lines, perhaps printed later, do not count.
func (c *comparison) part(line audit.Entry) {
	found := len(c.differences)
	c.differences = slices.DeleteFunc(c.differences, func(d difference) bool { return d.Finding == unrecorded })
	c.count -= found - len(c.differences)
	c.found(line.Event, "its event %q was removed, or the database and the lines part here, because an older copy was "+
		"restored; later lines were not compared", line.Event.Event)
}

// haveParted reports whether a line and the log's next event are of different copies, whose later ids can be the same.
func haveParted(line, next event.Event) bool {
	copies := []event.Type{event.DatabaseCopied, event.DatabaseRestored, ""}
	return (slices.Contains(copies, next.Event) || slices.Contains(copies, line.Event)) && !isSame(line, next)
}

// logReader reads the log. The ID of the entry is 0 at its end.
type logReader struct {
	next  func() (audit.Entry, error, bool)
	entry audit.Entry
	err   error
}

func (l *logReader) advance() { l.entry, l.err, _ = l.next() }

func (c *comparison) compareLine(line audit.Entry, log *logReader) {
	for log.entry.ID != 0 && log.entry.ID < line.ID {
		event := log.entry.Event
		c.found(event, "its event %q is not in the lines: the event was inserted, or lines are missing", event.Event)
		log.advance()
	}
	if log.err != nil {
		return
	}
	if log.entry.ID != line.ID {
		c.found(line.Event, "its event %q was removed", line.Event.Event)
		return
	}
	c.compareEntry(line, log.entry)
	log.advance()
}

// compareEntry compares the event of a line, and the record unless a later event has changed it.
func (c *comparison) compareEntry(line, entry audit.Entry) {
	switch {
	case !isSame(entry.Event, line.Event):
		c.found(line.Event, "its event %q was changed", line.Event.Event)
	case entry.State == nil, !entry.IsCurrent, entry.Record == audit.Deleted:
		// A record that was removed contradicts its events.
	case line.Record == audit.Deleted:
		c.found(entry.Event, "is stored, although it had been deleted when the line was printed")
	case line.Digest == nil:
		c.incomparable++
		c.messages.Warn("event %d: %s %d could not be read when the line was printed; run \"providerd doctor\" to see "+
			"whether it can be read now", line.ID, line.About(), line.Subject)
	case entry.Damaged != nil:
		c.found(entry.Event, "cannot be read: %v", entry.Damaged)
	case *line.Digest != *entry.Digest:
		c.found(entry.Event, unrecorded)
	}
}

// isSame compares events as they are printed.
func isSame(a, b event.Event) bool {
	one, err := json.Marshal(a)
	other, otherErr := json.Marshal(b)
	return err == nil && otherErr == nil && bytes.Equal(one, other)
}

// result returns a console.DiffersError if anything differs, and another error if anything could not be compared.
func (c *comparison) result() error {
	if c.unlisted > 0 && c.lines > 0 {
		unlisted := console.Count(int(c.unlisted), "stored record has", "stored records have")
		c.messages.Note("%s no line, and could not be compared", unlisted)
	}
	switch {
	case c.count > 0:
		return console.DiffersError("the database differs from the lines: " + console.Count(c.count, "finding"))
	case c.incomparable > 0:
		return fmt.Errorf("nothing differs, but %s could not be compared", console.Count(c.incomparable, "line"))
	case c.lines == 0:
		return errors.New("the file has no complete line; save the output of \"audit list --output jsonl\" in it")
	default:
		c.messages.Note("%s compared, nothing differs", console.Count(c.lines, "line"))
		return nil
	}
}
