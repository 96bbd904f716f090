package provider

import (
	"context"
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
