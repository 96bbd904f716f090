package provider

import (
	"context"
	"errors"
	"fmt"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

type updateCommand struct {
	console.DatabaseFlags
	console.ConsentFlag
	PK    providerPK `arg:"" help:"pk of the provider."`
	Items items      `arg:"" optional:"" name:"item" help:"Fields: NAME=TEXT, NAME:=JSON, NAME=@FILE or NAME:=@FILE. A secret must be in a file."`
}

// Help is the long help text.
func (*updateCommand) Help() string {
	return "Changes a provider in place. Its pk, its idempotency key, its links to applications and all other " +
		"fields stay the same. The new values are checked as in a create, shown, and stored once you confirm. If a client " +
		"then retries the create with the old body, the retry is refused, and the response lists the fields that differ; " +
		"\"providerd audit\" shows who changed which fields."
}

// Validate requires fields, and consent.
func (c *updateCommand) Validate() error {
	return errors.Join(c.Items.check(), c.ConsentFlag.Validate())
}

// Run changes the provider.
func (c *updateCommand) Run(
	ctx context.Context, contract *contract.Document, out *console.Output, messages *console.Messages,
) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		planned, err := database.Providers.Get(ctx, int64(c.PK))
		if err != nil {
			return console.SuggestList(err, listOfProviders)
		}
		kind := apply.KindOf(planned.Common().Kind)
		requested, err := c.Items.request(ctx, contract, kind, planned, "")
		if err != nil {
			return err
		}
		diffs, err := kind.Diff(contract, planned, requested)
		if err != nil {
			return err
		}
		noteAdvice(messages, requested)
		for _, diff := range diffs {
			for _, line := range diff.Lines() {
				_ = out.Line(console.Printable(line))
			}
		}
		if len(diffs) == 0 {
			messages.Note("provider %d already has these values", c.PK)
			return nil
		}
		change := store.Change{Planned: planned, Requested: requested, Fields: apply.FieldNames(diffs)}
		if err := c.Ask(out, fmt.Sprintf("update provider %d (%s)", c.PK, planned.Common().Name)); err != nil {
			return err
		}
		if err := database.Providers.ChangePlanned(ctx, []store.Change{change}); err != nil {
			return err
		}
		messages.Note("updated provider %d", c.PK)
		return nil
	})
}
