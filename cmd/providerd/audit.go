package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"example.com/providerd/store"
)

type auditCommand struct {
	databaseFlag
	Since  moment `default:"1d" placeholder:"TIME" help:"From when on: how long ago, such as 12h or 30d, or a time such as 2026-01-31T08:00:00Z (default ${default})."`
	Output string `default:"table" enum:"table,json" help:"Form of the output: ${enum}, which is one object a line (default ${default})."`
}

// Run prints what was done, oldest first.
func (c *auditCommand) Run(ctx context.Context, out *output) error {
	return c.withStore(ctx, func(database *store.Store) error {
		if c.Output == formatJSON {
			return c.printJSON(ctx, out, database)
		}
		return c.printTable(ctx, out, database)
	})
}

func (c *auditCommand) printJSON(ctx context.Context, out io.Writer, database *store.Store) error {
	lines := json.NewEncoder(out)
	for event, err := range database.Events(ctx, time.Time(c.Since)) {
		if err != nil {
			return err
		}
		if err := lines.Encode(event); err != nil {
			return fmt.Errorf("event %d: %w", event.ID, err)
		}
	}
	return nil
}

func (c *auditCommand) printTable(ctx context.Context, out io.Writer, database *store.Store) error {
	list := newTable(out, "TIME", "EVENT", "ID", "KIND", "NAME", "BY", "REQUEST", "FROM")
	for event, err := range database.Events(ctx, time.Time(c.Since)) {
		if err != nil {
			return err
		}
		list.row(timestamp(event.At), string(event.Event), fmt.Sprint(event.ID), string(event.Kind), event.Name,
			event.CreatedBy, event.RequestID, event.RemoteAddress)
	}
	return list.flush()
}
