package command

import (
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
	count, incomparable int
	findings            int
	// entriesAfter returns the log after an id. next and stop are those of the log after the first line, and entry is the
	// next entry of it.
	entriesAfter func(id int64) iter.Seq2[store.LogEntry, error]
	next         func() (store.LogEntry, error, bool)
	stop         func()
	entry        store.LogEntry
	// first and last are the ids of the first line, and of the last one that was compared. Lines can be repeated.
	first, last int64
	// yield takes findings until it returns false, which sets ended.
	yield func(difference, error) bool
	ended bool
}

// found yields a finding.
func (c *comparison) found(event store.Event, format string, values ...any) {
	f := difference{Event: event.ID, Finding: fmt.Sprintf(format, values...)}
	if event.Kind != "" {
		f.Provider = event.Subject
	}
	c.findings++
	c.ended = c.ended || !c.yield(f, nil)
}

// compare compares lines with the log.
func (c *comparison) compare(lines iter.Seq2[store.LogEntry, error]) error {
	for line, err := range lines {
		if err == nil {
			err = c.add(line)
		}
		if err != nil || c.ended {
			return err
		}
	}
	return nil
}

// add compares a line, after the events before it that are not in the lines.
func (c *comparison) add(line store.LogEntry) error {
	if c.count++; c.count == 1 {
		c.first = line.ID
		c.next, c.stop = iter.Pull2(c.entriesAfter(line.ID - 1))
		if err := c.advance(); err != nil {
			return err
		}
	}
	if line.ID < c.first {
		return fmt.Errorf("event %d comes after event %d; pass the lines in the order in which they were printed", line.ID,
			c.first)
	}
	if line.ID <= c.last {
		return nil
	}
	c.last = line.ID
	for c.entry.ID != 0 && c.entry.ID < line.ID && !c.ended {
		c.found(c.entry.Event, "its event %q is not in the lines: it was inserted, or lines are missing", c.entry.Event.Event)
		if err := c.advance(); err != nil {
			return err
		}
	}
	if c.entry.ID != line.ID {
		c.found(line.Event, "its event %q was removed", line.Event.Event)
		return nil
	}
	c.compareEntry(line)
	return c.advance()
}

// advance reads the next entry. Its ID is 0 at the end of the log.
func (c *comparison) advance() (err error) {
	c.entry, err, _ = c.next()
	return err
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

// addContradictions yields what needs no lines to be found.
func (c *comparison) addContradictions(contradictions iter.Seq2[store.Contradiction, error]) error {
	for found, err := range contradictions {
		if err != nil || c.ended {
			return err
		}
		c.findings++
		c.ended = !c.yield(difference{Provider: found.PK, Finding: found.Detail}, nil)
	}
	return nil
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
