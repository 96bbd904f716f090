package audit

import (
	"fmt"
	"iter"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
)

// finding is a difference between lines and the database.
type finding struct {
	Provider int64  `json:"provider"`
	Finding  string `json:"finding"`
}

const changedWithoutEvent = "was changed without an event"

// comparison compares lines with the events of the database.
type comparison struct {
	lines tables
	// findings is the number of differences, and unverifiable that of lines whose leaf the database has lost.
	findings, unverifiable int
	messages               *console.Messages
}

// print prints the differences. It returns ErrDiffers if there are any.
func (c *comparison) print(
	out *console.Output, format string, events iter.Seq2[store.Event, error],
	contradictions iter.Seq2[store.Contradiction, error],
) error {
	count := 0
	for _, table := range c.lines {
		count += len(table)
	}
	list := console.List[finding]{
		Headings: "PROVIDER,FINDING",
		Rows:     func(f finding) [][]string { return [][]string{{fmt.Sprint(f.Provider), f.Finding}} },
		Value:    func(f finding) any { return f },
	}
	if err := list.Print(out, c.messages, format, c.compare(events, contradictions)); err != nil {
		return err
	}
	if c.findings > 0 {
		return fmt.Errorf("%w from the lines: %s", ErrDiffers, console.Count(c.findings, "finding"))
	}
	if c.unverifiable > 0 {
		return fmt.Errorf("nothing differs, but %s could not be verified", console.Count(c.unverifiable, "line"))
	}
	c.messages.Note("%s of providers unchanged", console.Count(count, "line"))
	return nil
}

// compare yields the differences.
func (c *comparison) compare(
	events iter.Seq2[store.Event, error], contradictions iter.Seq2[store.Contradiction, error],
) iter.Seq2[finding, error] {
	return func(yield func(finding, error) bool) {
		found := func(provider int64, text string) bool {
			c.findings++
			return yield(finding{provider, text}, nil)
		}
		for event, err := range events {
			if err != nil {
				yield(finding{}, err)
				return
			}
			if !c.compareEvent(event, found) {
				return
			}
		}
		for table := range c.lines {
			for len(c.lines[table]) > 0 {
				if !found(c.removed(table)) {
					return
				}
			}
		}
		for contradiction, err := range contradictions {
			if err != nil {
				yield(finding{}, err)
				return
			}
			if !found(contradiction.PK, contradiction.Detail) {
				return
			}
		}
	}
}

// compareEvent compares an event with its lines, after the lines whose events were removed.
func (c *comparison) compareEvent(event store.Event, found func(int64, string) bool) bool {
	table, stored := event.Row.Table, keptOf(event)
	for len(c.lines[table]) > 0 && c.lines[table][0].key < stored.key {
		if !found(c.removed(table)) {
			return false
		}
	}
	lines := c.take(table, stored.key)
	if len(lines) == 0 {
		text := "was inserted"
		if table == store.LogChanges {
			text = fmt.Sprintf("its event %q was inserted", event.Event)
		}
		return found(event.ID, text)
	}
	for _, line := range lines {
		if text := c.difference(event, line, stored); text != "" {
			return found(event.ID, text)
		}
	}
	return true
}

// difference returns how the record or the event differs from a line; "" if it does not.
func (c *comparison) difference(event store.Event, line, stored kept) string {
	switch {
	case event.Damaged != nil:
		return event.Damaged.Error()
	case line.event != stored.event && event.Row.Table == store.LogChanges:
		return fmt.Sprintf("its event %q was changed", event.Event)
	case line.event != stored.event:
		return changedWithoutEvent
	case line.leaf == stored.leaf:
		return ""
	case line.leaf == sum{} || stored.leaf == sum{}:
		if line.leaf != (sum{}) {
			c.unverifiable++
		}
		c.messages.Warn("provider %d: the event %q cannot be verified: an earlier release has deleted the record, or it was "+
			"damaged", stored.provider, event.Event)
		return ""
	default:
		return changedWithoutEvent
	}
}

// removed takes the first lines of a table, whose event is missing.
func (c *comparison) removed(table int) (provider int64, text string) {
	line := c.take(table, c.lines[table][0].key)[0]
	if table == store.LogChanges {
		return line.provider, "an event was removed"
	}
	return line.provider, "was removed without an event"
}

// take takes the first lines with a key.
func (c *comparison) take(table int, key int64) []kept {
	lines := c.lines[table]
	count := 0
	for count < len(lines) && lines[count].key == key {
		count++
	}
	c.lines[table] = lines[count:]
	return lines[:count]
}
