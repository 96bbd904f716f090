package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
	"example.com/providerd/store/records"
)

type showCommand struct {
	console.DatabaseFlags
	console.ListFormat
	Reveal   bool       `help:"Print secrets, which are masked otherwise."`
	PK       providerPK `arg:"" optional:"" help:"pk of the provider."`
	ClientID string     `placeholder:"ID" help:"client_id of the provider, instead of its pk."`
}

// Validate requires exactly one of pk and client_id.
func (c *showCommand) Validate() error {
	if (c.PK == 0) == (c.ClientID == "") {
		return errors.New("pass either the pk of a provider or --client-id")
	}
	return nil
}

// Run shows the provider.
func (c *showCommand) Run(ctx context.Context, out *console.Output) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		record, err := database.Providers.Get(ctx, int64(c.PK))
		if c.ClientID != "" {
			record, err = database.Providers.ByClientID(ctx, c.ClientID)
		}
		if err != nil {
			return console.SuggestList(err, listOfProviders)
		}
		return c.show(out, record)
	})
}

func (c *showCommand) show(out *console.Output, record records.Record) error {
	if c.Output == console.FormatJSON {
		return out.JSON(contract.ToAPI(record, c.Reveal), "  ")
	}
	fields, err := contract.Fields(record, c.Reveal)
	if err != nil {
		return err
	}
	common := record.Common()
	list := console.NewTable(out)
	show := func(name string, value string) {
		if value != "" {
			list.Row(name, value)
		}
		delete(fields, name)
	}
	show("pk", fmt.Sprint(common.PK))
	show("kind", string(common.Kind))
	for _, name := range []string{"name", "client_id", "client_secret", "delegated_subject"} {
		show(name, console.Unquote(fields[name]))
	}
	// These are the same for each provider of a kind.
	for _, name := range []string{"component", "meta_model_name", "verbose_name", "verbose_name_plural"} {
		delete(fields, name)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		show(name, console.Unquote(fields[name]))
	}
	show("created_at", console.Timestamp(common.CreatedAt.Time))
	show("created_by", common.CreatedBy)
	show("request_id", common.RequestID)
	show("remote_address", common.RemoteAddress)
	return list.Flush()
}
