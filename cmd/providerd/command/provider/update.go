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
	PK     providerPK `arg:"" help:"pk of the provider."`
	Items  items      `arg:"" name:"item" help:"Fields: NAME=TEXT, NAME:=JSON, NAME=@FILE or NAME:=@FILE. A secret must be in a file; client_secret=generate generates one."`
	Reveal bool       `help:"Print the provider as JSON, with its secret, before it is stored, and the changes on standard error."`
}

// Help is the long help text.
func (*updateCommand) Help() string {
	return "Changes a provider in place. Its pk, its idempotency key, its links to applications and all other " +
		"fields stay the same. The new values are checked as in a create, shown, and stored once you confirm. If a client " +
		"then retries the create with the old body, the retry is refused, and the response lists the fields that differ; " +
		"\"providerd audit\" shows who changed which fields."
}

// Validate requires consent, and that a secret can be printed.
func (c *updateCommand) Validate() error {
	return errors.Join(c.Items.check(c.Reveal), c.ConsentFlag.Validate())
}

// Run changes the provider.
func (c *updateCommand) Run(
	ctx context.Context, document *contract.Document, out *console.Output, messages *console.Messages,
) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		planned, err := database.Providers.Get(ctx, int64(c.PK))
		if err != nil {
			return console.SuggestList(err, listOfProviders)
		}
		kind := apply.KindOf(planned.Common().Kind)
		requested, err := c.Items.request(ctx, document, kind, planned, "")
		if err != nil {
			return err
		}
		diffs, err := kind.Diff(document, planned, requested)
		if err != nil {
			return err
		}
		noteAdvice(messages, requested)
		for _, diff := range diffs {
			for _, line := range diff.Lines() {
				if c.Reveal {
					messages.Note("%s", line)
					continue
				}
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
		if c.Reveal {
			_ = out.JSON(contract.ToAPI(requested, true), "")
			if out.Lost() != nil {
				return errors.New("the secret could not be printed; nothing was stored")
			}
		}
		if err := database.Providers.ChangePlanned(ctx, []store.Change{change}); err != nil {
			return err
		}
		messages.Note("updated provider %d", c.PK)
		return nil
	})
}
