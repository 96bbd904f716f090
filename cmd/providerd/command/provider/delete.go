package provider

import (
	"context"
	"fmt"
	"strings"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
	"example.com/providerd/store/records"
)

// maxDeleted limits one transaction, because creates wait for it.
const maxDeleted = 1000

type deleteCommand struct {
	console.DatabaseFlags
	console.ConsentFlag
	PKs []providerPK `arg:"" name:"pk" help:"pks of up to 1000 providers. If one does not exist or is linked to an application, none is deleted."`
}

// Help is the long help text.
func (*deleteCommand) Help() string {
	return "Deletes providers with their secrets and idempotency keys. A later create with the same key, for " +
		"example from \"providerd apply\", creates the provider again with another pk. \"providerd audit\" still shows the " +
		"creation and the deletion. Backups still contain what was deleted, and so do the files of the database for a " +
		"while; the secrets in them are encrypted. A provider that serves an application is not deleted; run " +
		"\"providerd application unlink\" first."
}

// Validate limits the number of providers.
func (c *deleteCommand) Validate() error {
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
		if err := database.Providers.Delete(ctx, pks); err != nil {
			return err
		}
		messages.Note("deleted %s", console.Count(len(providers), "provider"))
		return nil
	})
}

// nameProviders names providers in a question.
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
