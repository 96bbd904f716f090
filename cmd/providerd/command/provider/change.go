package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
	"example.com/providerd/store/records"
)

type createCommand struct {
	console.DatabaseFlags
	As     console.Label        `required:"" placeholder:"NAME" help:"Caller that owns the provider: the name of the caller's tokens."`
	Kind   console.ProviderKind `arg:"" help:"Kind of provider: oauth2 or workspace_directory."`
	Items  items                `arg:"" name:"item" help:"Fields: NAME=TEXT, NAME:=JSON, NAME=@FILE or NAME:=@FILE. A secret must be in a file."`
	Reveal bool                 `help:"Print the provider as JSON, with its secret, instead of its pk."`
}

// Help is the long help text.
func (*createCommand) Help() string {
	return "Creates a provider in the database, with the same checks as a create over HTTP, and prints its pk. " +
		"\"providerd provider show --reveal\" prints a generated client_id and secret."
}

// Validate requires that a secret can be printed.
func (c *createCommand) Validate() error { return c.Items.check(c.Reveal) }

// Run creates the provider.
func (c *createCommand) Run(
	ctx context.Context, document *contract.Document, out *console.Output, messages *console.Messages,
) error {
	requested, err := c.Items.request(ctx, document, apply.KindOf(records.Kind(c.Kind)), nil, string(c.As))
	if err != nil {
		return err
	}
	return c.WithStore(ctx, func(database *store.Store) error {
		changes := []store.Change{{Requested: requested}}
		pks, err := database.Providers.Change(ctx, func(store.Reader) ([]store.Change, error) { return changes, nil })
		if err != nil {
			return err
		}
		noteAdvice(messages, requested)
		messages.Note("created provider %d (%s)", pks[0], console.Printable(requested.Common().Name))
		if !c.Reveal {
			return out.Line(fmt.Sprint(pks[0]))
		}
		created, err := database.Providers.Get(ctx, pks[0])
		if err != nil {
			return err
		}
		return out.JSON(contract.ToAPI(created, true), "")
	})
}

// noteAdvice prints the advice for the settings of a record. An update keeps what it omits.
func noteAdvice(messages *console.Messages, record records.Record) {
	items := strings.NewReplacer("Omit the field to", "Write "+generateSecret+" to", "Omit the field,",
		"Write client_secret=,")
	for _, advice := range apply.Advise(record) {
		messages.Note("advice: %s: %s (%s)", advice.Pointer, items.Replace(advice.Detail), advice.Section)
	}
}

type updateCommand struct {
	console.DatabaseFlags
	console.ConsentFlag
	PK     console.Positive `arg:"" help:"pk of the provider, from \"providerd provider list\"."`
	Items  items            `arg:"" name:"item" help:"Fields: NAME=TEXT, NAME:=JSON, NAME=@FILE or NAME:=@FILE. A secret must be in a file; client_secret=generate generates one."`
	Reveal bool             `help:"Print the provider as JSON, with its secret, before it is stored, and the changes on standard error."`
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
		if err = database.Providers.ChangePlanned(ctx, []store.Change{change}); err == nil {
			messages.Note("updated provider %d", c.PK)
		}
		return err
	})
}

type deleteCommand struct {
	console.DatabaseFlags
	console.ConsentFlag
	PKs []console.Positive `arg:"" name:"pk" help:"pks of up to 1000 providers, from \"providerd provider list\". If one does not exist or is linked to an application, none is deleted."`
}

// Help is the long help text.
func (*deleteCommand) Help() string {
	return "Deletes providers with their secrets and idempotency keys. A later create with the same key, for " +
		"example from \"providerd apply\", creates the provider again with another pk. \"providerd audit\" still shows the " +
		"creation and the deletion. Backups still contain what was deleted, and so do the files of the database for a " +
		"while; the secrets in them are encrypted. A provider that serves an application is not deleted; run " +
		"\"providerd application unlink\" first."
}

// Validate limits the number of providers, because creates wait for the transaction.
func (c *deleteCommand) Validate() error {
	const maxDeleted = 1000
	if len(c.PKs) > maxDeleted {
		return fmt.Errorf("%d providers are too many; pass at most %d", len(c.PKs), maxDeleted)
	}
	return c.ConsentFlag.Validate()
}

// Run deletes the providers.
func (c *deleteCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	pks := make([]int64, len(c.PKs))
	for i, pk := range c.PKs {
		pks[i] = int64(pk)
	}
	return c.WithStore(ctx, func(database *store.Store) error {
		providers, err := database.Providers.Deletable(ctx, pks)
		if err != nil {
			return console.SuggestList(err, listOfProviders)
		}
		if err := c.Ask(out, "delete "+nameProviders(providers)); err != nil {
			return err
		}
		if err = database.Providers.Delete(ctx, pks); err == nil {
			messages.Note("deleted %s", console.Count(len(providers), "provider"))
		}
		return err
	})
}

func nameProviders(providers []records.Provider) string {
	const maxNamed, maxNameBytes = 10, 100
	var names []string
	for _, provider := range providers[:min(len(providers), maxNamed)] {
		name := console.Truncate(provider.Name, maxNameBytes)
		names = append(names, fmt.Sprintf("%d (%s, %s)", provider.PK, provider.Kind, name))
	}
	if more := len(providers) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return console.Count(len(providers), "provider") + ": " + strings.Join(names, ", ")
}
