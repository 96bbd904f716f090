package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store"
)

type auditCommand struct {
	flags.DatabaseFlags
	filterFlags
	Since *flags.Time       `placeholder:"TIME" help:"Only events since this long ago, such as 12h or 30d, or since a time, such as 2026-01-31T08:00:00Z (default 1d; with --after, no limit)."`
	After store.EventCursor `placeholder:"CURSOR" help:"Only events after the one with this cursor, which --output json and yaml contain."`
	flags.ListFormat
}

// Help is the long help text.
func (*auditCommand) Help() string {
	return "Prints the oldest event first. Events of a provider can be selected by its kind, client_id and creator, " +
		"even after it was deleted."
}

// Run prints the events.
func (c *auditCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	since := flags.Time(time.Now().Add(-flags.Day))
	switch {
	case c.Since != nil:
		since = *c.Since
	case c.After != store.EventCursor{}:
		since = flags.Time{}
	}
	events := console.List[store.Event]{
		Headings: "TIME,EVENT,ID,KIND,NAME,BY,REQUEST,FROM,USER,FIELDS",
		Rows: func(event store.Event) [][]string {
			return [][]string{{
				console.Timestamp(event.At), string(event.Event), fmt.Sprint(event.ID), string(event.Kind), event.Name,
				event.CreatedBy, event.RequestID, event.RemoteAddress, event.User, strings.Join(event.Fields, ", "),
			}}
		},
		Value: func(event store.Event) any { return event },
	}
	return c.WithStore(ctx, func(database *store.Store) error {
		found := console.Limit(database.Events(ctx, c.filter(since), c.After), int64(c.Limit), func(last store.Event) {
			// Its error is always nil.
			text, _ := last.Cursor.MarshalText()
			messages.Note("there are more; continue with --after %s", text)
		})
		return events.Print(out, messages, c.Output, found)
	})
}
