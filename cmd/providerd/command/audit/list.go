// Package audit implements "providerd audit", which shows, follows and verifies the audit trail.
package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
	"example.com/providerd/store/audit"
	"example.com/providerd/store/event"
)

// Commands has the commands of "providerd audit".
type Commands struct {
	List   listCommand   `cmd:"" aliases:"ls" default:"withargs" help:"Show events as a table or as JSON lines, or follow them."`
	Verify verifyCommand `cmd:"" report:"" help:"Compare the database with audit lines saved elsewhere."`
}

type listCommand struct {
	console.DatabaseFlags
	Since      *console.Time        `placeholder:"TIME" help:"Only events newer than this duration, such as 30d, or this time, such as 2026-01-31T08:00:00Z (default 1d; no limit with --pk, --request, --after or --output jsonl)."`
	Kind       console.ProviderKind `placeholder:"KIND" help:"Only events of this kind of provider: oauth2 or workspace_directory."`
	PK         console.Positive     `placeholder:"PK" help:"Only events of this provider."`
	By         console.FilterText   `placeholder:"NAME" help:"Only events caused by tokens of this name, or by this operating system user."`
	Request    console.FilterText   `placeholder:"ID" help:"Only events caused by the request with this X-Request-Id."`
	After      console.Positive     `placeholder:"ID" help:"Only events after the one with this id."`
	Limit      console.Positive     `placeholder:"N" help:"Print at most N; if there are more, a message on standard error gives the --after value of the next page."`
	Follow     bool                 `help:"With --output jsonl, wait for more events until a signal arrives."`
	CursorFile string               `type:"path" placeholder:"FILE" help:"With --output jsonl, continue after the event whose id is in this file, and update it."`
	Output     string               `short:"o" default:"table" enum:"table,json,jsonl" help:"Output format: ${enum} (default ${default}). jsonl prints one object per event; without a filter, it contains the digest that verify needs."`
}

const formatJSONL = "jsonl"

// Validate refuses flags that contradict each other.
func (c *listCommand) Validate() error {
	switch {
	case c.Output != formatJSONL && (c.Follow || c.CursorFile != ""):
		return errors.New("--follow and --cursor-file require --output jsonl")
	case c.Output == formatJSONL && c.Limit != 0:
		return errors.New("--limit is not available with --output jsonl")
	case c.CursorFile != "" && c.After != 0:
		return errors.New("pass --after or --cursor-file, not both")
	default:
		return nil
	}
}

// Help is the long help text.
func (*listCommand) Help() string {
	return "Prints the oldest event first. When a provider is deleted, its events remain.\n\nWith --output jsonl, every " +
		"event is printed at least once, in order of id: the command waits for open transactions that may still add " +
		"earlier events. With --cursor-file, a run continues where the last one ended."
}

func (c *listCommand) isOfLastDay() bool {
	return c.Since == nil && c.Output != formatJSONL && c.PK == 0 && c.Request == "" && c.After == 0
}

func (c *listCommand) filter() event.Filter {
	filter := event.Filter{Kind: string(c.Kind), PK: int64(c.PK), By: string(c.By), RequestID: string(c.Request)}
	switch {
	case c.Since != nil:
		filter.Since = time.Time(*c.Since)
	case c.isOfLastDay():
		filter.Since = time.Now().Add(-console.Day)
	}
	return filter
}

// Run prints the events.
func (c *listCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	events := console.List[event.Event]{Headings: "ID,TIME,EVENT,SUBJECT,FIELDS,BY,REQUEST,FROM", Rows: rowsOfEvent}
	events.None = (c.By + c.Request).WhenNone()
	if c.isOfLastDay() {
		events.None += "; without --since, only the last day is listed"
	}
	return c.WithStore(ctx, func(database *store.Store) error {
		if c.Output == formatJSONL {
			log := eventLog{listCommand: c, out: out, messages: messages, after: audit.Cursor{ID: int64(c.After)}}
			return log.print(ctx, database)
		}
		// An error recurs below.
		if newest, err := database.Events.Newest(ctx); err == nil && int64(c.After) > newest {
			events.None = fmt.Sprintf(": the newest event has id %d", newest)
		}
		found := database.Events.List(ctx, c.filter(), int64(c.After))
		return events.Print(out, messages, c.Output, console.Limit(found, int64(c.Limit), func(last event.Event) {
			messages.Note("there are more events; continue with --after %d", last.ID)
		}))
	})
}

func rowsOfEvent(event event.Event) [][]string {
	subject := strings.TrimSpace(event.Kind + " " + event.Name)
	if event.Subject != 0 {
		subject = strings.TrimSpace(fmt.Sprint(event.Subject, " ", subject))
	}
	by := cmp.Or(event.Caller, event.OSUser)
	if event.Caller != "" && event.OSUser != "" {
		by = fmt.Sprintf("%s (%s)", event.Caller, event.OSUser)
	}
	return [][]string{{
		fmt.Sprint(event.ID), console.Timestamp(event.At.Time), string(event.Event), subject,
		strings.Join(event.Fields, ", "), by, event.RequestID, event.RemoteAddress,
	}}
}
