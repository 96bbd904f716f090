package command

import (
	"context"
	"fmt"
	"strings"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store"
)

// maxDeleted is how many providers are deleted at a time, since creates wait meanwhile.
const maxDeleted = 1000

type providerDeleteCommand struct {
	flags.DatabaseFlags
	consentFlag
	PKs []positive `arg:"" name:"pk" help:"pks of the providers, up to 1000. All of them are deleted, or, where one does not exist or is linked to an application, none."`
}

// Help is the long help text.
func (*providerDeleteCommand) Help() string {
	return "A provider is removed with its secret and its idempotency key, so that a create with the same key, such as " +
		"by \"providerd apply\", makes it again, with another pk. \"providerd audit\" goes on to show its creation, and " +
		"shows its deletion. Copies of the database, and for a while its files, still have what was deleted, its secret " +
		"encrypted. A provider that serves an application is not deleted: \"providerd application unlink\" frees it."
}

// Validate bounds what one transaction does.
func (c *providerDeleteCommand) Validate() error {
	if len(c.PKs) > maxDeleted {
		return fmt.Errorf("%d providers are too many; give up to %d at a time", len(c.PKs), maxDeleted)
	}
	return c.consentFlag.Validate()
}

// Run deletes the providers.
func (c *providerDeleteCommand) Run(ctx context.Context, messages *console.Messages) error {
	pks := make([]int32, len(c.PKs))
	for i, pk := range c.PKs {
		pks[i] = int32(pk)
	}
	return c.WithStore(ctx, func(database *store.Store) error {
		providers, err := database.Deletable(ctx, pks)
		if err != nil {
			return console.SuggestList(err, listOfProviders)
		}
		if err := c.ask("delete " + nameProviders(providers)); err != nil {
			return err
		}
		if err := database.DeleteProviders(ctx, pks); err != nil {
			return err
		}
		messages.Note("deleted %s", console.Count(len(providers), "provider"))
		return nil
	})
}

// maxNamed is how many providers are named in a question.
const maxNamed = 10

func nameProviders(providers []store.Provider) string {
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

// maxNameBytes is how much of a name is told in a question.
const maxNameBytes = 100
