package audit

import (
	"context"
	"fmt"
	"math"
	"strings"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store"
)

// HeadCommand is "providerd audit head" with its flags.
type HeadCommand struct {
	flags.DatabaseFlags
}

// Help is the long help text.
func (*HeadCommand) Help() string {
	return "Prints a line with the database and the tree, one with the size and one with the root, for the tree of " +
		"creates and for that of changes. Keep them where nobody who can write to the database can change them, and " +
		"compare them later with \"providerd audit verify --against FILE\"."
}

// Run prints the heads.
func (c *HeadCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		log := Log{Out: out, Messages: messages}
		end, err := log.settled(ctx, database)
		if err != nil {
			return err
		}
		var heads []string
		for table := range store.LogChanges + 1 {
			head, err := database.HeadOf(ctx, table, end.LogCursor[table], math.MaxInt64)
			if err != nil {
				return err
			}
			origin, err := originOf(ctx, database, table)
			if err != nil {
				return err
			}
			if head.Unknown > 0 {
				messages.Warn("%s: the leaves of %s are not known, so changes of these are not detected", origin,
					console.Count(int(head.Unknown), "record"))
			}
			heads = append(heads, checkpoint{origin, head.Size, head.Root.String()}.text())
		}
		if err := end.Confirm(ctx); err != nil {
			return err
		}
		return out.Line(strings.Join(heads, "\n\n"))
	})
}

// checkpoint is the body of a checkpoint (C2SP tlog-checkpoint), without a signature.
type checkpoint struct {
	origin string
	size   int64
	root   string
}

func (c checkpoint) text() string { return fmt.Sprintf("%s\n%d\n%s", c.origin, c.size, c.root) }

// originOf returns the name of a tree of a database.
func originOf(ctx context.Context, database *store.Store, table int) (string, error) {
	id, err := database.ID(ctx)
	if err != nil {
		return "", err
	}
	name := map[int]string{store.LogCreates: "creates", store.LogChanges: "changes"}[table]
	return "providerd/" + id + "/" + name, nil
}
