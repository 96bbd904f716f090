package command

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
)

// difference is one between lines and the database.
type difference struct {
	Provider int64  `json:"provider,omitempty"`
	Event    int64  `json:"event,omitempty"`
	Finding  string `json:"finding"`
}

// comparison compares lines with the database.
type comparison struct {
	messages *console.Messages
	// count is the number of lines, and incomparable that of lines whose record could not be compared.
	count, incomparable, findings int
	// entriesAfter returns the log after an id, and next continues that after the first line. entry is the next entry.
	entriesAfter func(id int64) iter.Seq2[store.LogEntry, error]
	next         func() (store.LogEntry, error, bool)
	entry        store.LogEntry
	// first and last are the ids of the first line, and of the last one that was compared. Lines can be repeated.
	first, last int64
	// yield takes findings. err ends the comparison; it is errUnread if yield returned false.
	yield func(difference, error) bool
	err   error
}

var errUnread = errors.New("nothing reads the findings")

// found yields a finding.
func (c *comparison) found(event store.Event, format string, values ...any) {
	f := difference{Event: event.ID, Finding: fmt.Sprintf(format, values...)}
	if event.Kind != "" {
		f.Provider = event.Subject
	}
	c.add(f)
}

func (c *comparison) add(f difference) {
	c.findings++
	if c.err == nil && !c.yield(f, nil) {
		c.err = errUnread
	}
}

// differences compares lines with the log, and adds what needs no lines to be found.
func (c *comparison) differences(
	lines iter.Seq2[store.LogEntry, error], contradictions iter.Seq2[store.Contradiction, error],
) iter.Seq2[difference, error] {
	return func(yield func(difference, error) bool) {
		c.yield = yield
		c.compare(lines)
		for found, err := range contradictions {
			if c.err = cmp.Or(c.err, err); c.err != nil {
				break
			}
			c.add(difference{Provider: found.PK, Finding: found.Detail})
		}
		if c.err != nil && !errors.Is(c.err, errUnread) {
			yield(difference{}, c.err)
		}
	}
}

func (c *comparison) compare(lines iter.Seq2[store.LogEntry, error]) {
	for line, err := range lines {
		if c.err = err; err != nil {
			return
		}
		if c.count++; c.count == 1 {
			next, stop := iter.Pull2(c.entriesAfter(line.ID - 1))
			defer stop()
			c.next, c.first = next, line.ID
			c.advance()
		}
		if line.ID < c.first {
			c.err = fmt.Errorf("event %d comes after event %d; pass the lines in the order in which they were printed",
				line.ID, c.first)
		}
		if line.ID > c.last {
			c.last = line.ID
			c.compareLine(line)
		}
		if c.err != nil {
			return
		}
	}
}

func (c *comparison) compareLine(line store.LogEntry) {
	for c.err == nil && c.entry.ID != 0 && c.entry.ID < line.ID {
		c.found(c.entry.Event, "its event %q is not in the lines: it was inserted, or lines are missing", c.entry.Event.Event)
		c.advance()
	}
	if c.entry.ID != line.ID {
		c.found(line.Event, "its event %q was removed", line.Event.Event)
		return
	}
	c.compareEntry(line)
	c.advance()
}

// advance reads the next entry. Its ID is 0 at the end of the log.
func (c *comparison) advance() {
	if c.err == nil {
		c.entry, c.err, _ = c.next()
	}
}

// compareEntry compares the event of a line, and the record unless a later event has changed it.
func (c *comparison) compareEntry(line store.LogEntry) {
	entry := c.entry
	switch {
	case !isSame(entry.Event, line.Event):
		c.found(line.Event, "its event %q was changed", line.Event.Event)
	case entry.Kind == "", !entry.IsCurrent, entry.Record == store.RecordDeleted:
		// A record that was removed contradicts its events.
	case line.Record == store.RecordDeleted:
		c.found(entry.Event, "is stored, although it was deleted when the line was printed")
	case line.Digest == nil:
		c.incomparable++
		c.messages.Warn("event %d: provider %d could not be read when the line was printed", line.ID, line.Subject)
	case entry.Damaged != nil:
		c.found(entry.Event, "cannot be read: %v", entry.Damaged)
	case digestVersion(*line.Digest) != digestVersion(*entry.Digest):
		c.incomparable++
		c.messages.Warn("event %d: its digest is from another version of providerd", line.ID)
	case *line.Digest != *entry.Digest:
		c.found(entry.Event, "was changed without an event")
	}
}

// digestVersion returns the version of a digest.
func digestVersion(digest string) string {
	version, _, _ := strings.Cut(digest, ":")
	return version
}

func isSame(a, b store.Event) bool {
	if !a.At.Equal(b.At.Time) || !slices.Equal(a.Fields, b.Fields) {
		return false
	}
	a.At, b.At, a.Fields, b.Fields = store.Time{}, store.Time{}, nil, nil
	return reflect.DeepEqual(a, b)
}

// result returns errAuditDiffers if anything differs, and another error if anything could not be compared.
func (c *comparison) result() error {
	switch {
	case c.findings > 0:
		return fmt.Errorf("%w from the lines: %s", errAuditDiffers, console.Count(c.findings, "finding"))
	case c.incomparable > 0:
		return fmt.Errorf("nothing differs, but %s could not be compared", console.Count(c.incomparable, "line"))
	case c.count == 0:
		return errors.New("the file has no complete line")
	default:
		c.messages.Note("%s compared, nothing differs", console.Count(c.count, "line"))
		return nil
	}
}
