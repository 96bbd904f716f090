package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/providerd/cmd/providerd/audit"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store"
)

type auditCommands struct {
	List   auditCommand        `cmd:"" aliases:"ls" default:"withargs" help:"Show events, or print or follow the event log line by line."`
	Head   audit.HeadCommand   `cmd:"" help:"Print the heads of the audit, to keep elsewhere."`
	Verify audit.VerifyCommand `cmd:"" help:"Find records that were rewritten since lines or heads were kept."`
}

type auditCommand struct {
	flags.DatabaseFlags
	filterFlags
	Since      *flags.Time `placeholder:"TIME" help:"Only events since this long ago, such as 12h or 30d, or since a time, such as 2026-01-31T08:00:00Z (default 1d; with --after, no limit)."`
	After      auditCursor `placeholder:"CURSOR" help:"Only events after the one with this cursor, which the output contains, except for tables."`
	Follow     bool        `help:"With --output jsonl, wait for more events until a signal arrives."`
	CursorFile string      `type:"path" placeholder:"FILE" help:"With --output jsonl, continue after the cursor in this file, and update it."`
	Output     string      `short:"o" default:"table" enum:"table,json,jsonl,yaml" help:"Output format: ${enum} (default ${default}). jsonl prints an object for each event, in the order of commits, with what verify needs."`
}

// auditCursor is the position of an event in the order of time, or in the event log.
type auditCursor struct {
	event store.EventCursor
	log   store.LogCursor
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *auditCursor) UnmarshalText(text []byte) error {
	if bytes.ContainsRune(text, '.') {
		return c.log.UnmarshalText(text)
	}
	return c.event.UnmarshalText(text)
}

const formatJSONL = "jsonl"

var errOtherCursor = errors.New("--after: the cursor comes from another --output format")

// Validate refuses flags that contradict each other.
func (c *auditCommand) Validate() error {
	if c.Output != formatJSONL {
		return c.validateList()
	}
	switch {
	case c.filterFlags != filterFlags{}, c.Since != nil:
		return errors.New("--output jsonl prints all events; --kind, --name, --client-id, --created-by, --since and " +
			"--limit are not available")
	case c.After.event != store.EventCursor{}:
		return errOtherCursor
	case c.CursorFile != "" && c.After != auditCursor{}:
		return errors.New("pass either --after or --cursor-file")
	default:
		return nil
	}
}

// validateList refuses flags that only --output jsonl has.
func (c *auditCommand) validateList() error {
	switch {
	case c.Follow, c.CursorFile != "":
		return errors.New("--follow and --cursor-file require --output jsonl")
	case c.After.log != store.LogCursor{}:
		return errOtherCursor
	default:
		return nil
	}
}

// Help is the long help text.
func (*auditCommand) Help() string {
	return "Prints the oldest event first. Events of a provider can be selected by its kind, client_id and creator, " +
		"even after it was deleted.\n\nWith --output jsonl, every event is printed at least once, in an order in which " +
		"none is committed late: with --cursor-file, a run continues where the last one ended."
}

// Run prints the events.
func (c *auditCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	since := flags.Time(time.Now().Add(-flags.Day))
	switch {
	case c.Since != nil:
		since = *c.Since
	case c.After.event != store.EventCursor{}:
		since = flags.Time{}
	}
	events := console.List[store.Event]{
		Headings: "TIME,EVENT,ID,KIND,NAME,BY,REQUEST,FROM,USER,FIELDS",
		Rows: func(event store.Event) [][]string {
			return [][]string{{
				console.Timestamp(event.At.Time), string(event.Event), fmt.Sprint(event.ID), string(event.Kind), event.Name,
				event.CreatedBy, event.RequestID, event.RemoteAddress, event.User, strings.Join(event.Fields, ", "),
			}}
		},
		Value: func(event store.Event) any { return event },
	}
	return c.WithStore(ctx, func(database *store.Store) error {
		if c.Output == formatJSONL {
			return audit.Log{
				Follow: c.Follow, CursorFile: c.CursorFile, After: c.After.log, Out: out, Messages: messages,
			}.Print(ctx, database)
		}
		found := console.Limit(database.Events(ctx, c.filter(since), c.After.event), int64(c.Limit), func(last store.Event) {
			// Its error is always nil.
			text, _ := last.Cursor.MarshalText()
			messages.Note("there are more; continue with --after %s", text)
		})
		return events.Print(out, messages, c.Output, found)
	})
}
