package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/escape"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

type providerCommands struct {
	List   providerListCommand   `cmd:"" aliases:"ls" help:"List providers, ordered by pk."`
	Show   providerShowCommand   `cmd:"" help:"Show one provider with all its fields."`
	Advise providerAdviseCommand `cmd:"" help:"Check stored providers against best practice."`
	Export providerExportCommand `cmd:"" help:"Write providers to a file for \"providerd apply\"."`
	Create providerCreateCommand `cmd:"" help:"Create a provider."`
	Update providerUpdateCommand `cmd:"" help:"Change fields of a provider."`
	Delete providerDeleteCommand `cmd:"" aliases:"rm" help:"Delete providers."`
}

// revealFlag is the flag of commands that can print secrets.
type revealFlag struct {
	Reveal bool `help:"Print secrets. Without this flag they are masked."`
}

type providerListCommand struct {
	flags.DatabaseFlags
	providerFlags
	flags.ListFormat
	revealFlag
}

// Run lists the providers.
func (c *providerListCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	providers := console.List[store.Record]{
		Headings: "PK,KIND,NAME,CLIENT ID OR SUBJECT,SECRET,APPLICATION,BACKCHANNEL,CREATED,BY",
		Rows:     c.rows,
		Value:    func(record store.Record) any { return contract.ToAPI(record, c.Reveal) },
	}
	return c.WithStore(ctx, func(database *store.Store) error {
		records := c.records(ctx, database, messages)
		if c.Reveal {
			records = database.Opened(ctx, records)
		}
		return providers.Print(out, messages, c.Output, records)
	})
}

func (c *providerListCommand) rows(record store.Record) [][]string {
	common := record.Common()
	identity, secret := identify(contract.ToAPI(record, c.Reveal))
	return [][]string{{
		fmt.Sprint(common.PK), string(common.Kind), common.Name, identity, secret, common.Application.Slug,
		common.Backchannel.Application.Slug, console.Timestamp(common.CreatedAt.Time), common.CreatedBy,
	}}
}

type providerShowCommand struct {
	flags.DatabaseFlags
	flags.ListFormat
	revealFlag
	PK       int64  `arg:"" optional:"" help:"pk of the provider."`
	ClientID string `placeholder:"ID" help:"client_id of the provider, instead of its pk."`
}

// Validate requires exactly one of pk and client_id.
func (c *providerShowCommand) Validate() error {
	if (c.PK == 0) == (c.ClientID == "") {
		return errors.New("pass either the PK of a provider or --client-id")
	}
	return nil
}

// Run shows the provider.
func (c *providerShowCommand) Run(ctx context.Context, out *console.Output) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		var record store.Record
		var err error
		if c.ClientID != "" {
			record, err = database.ProviderByClientID(ctx, c.ClientID)
		} else {
			record, err = database.Provider(ctx, c.PK)
		}
		if err != nil {
			return console.SuggestList(err, listOfProviders)
		}
		return c.show(out, record)
	})
}

func (c *providerShowCommand) show(out *console.Output, record store.Record) error {
	text, err := json.Marshal(contract.ToAPI(record, c.Reveal))
	if err != nil {
		return fmt.Errorf("render provider: %w", err)
	}
	if c.Output == console.FormatJSON {
		var indented bytes.Buffer
		if err := json.Indent(&indented, escape.JSON(text), "", "  "); err != nil {
			return fmt.Errorf("render provider: %w", err)
		}
		return out.Line(indented.String())
	}
	common := record.Common()
	list := console.NewTable(out)
	list.Row("kind", string(common.Kind))
	list.Row("created_at", console.Timestamp(common.CreatedAt.Time))
	list.Row("created_by", common.CreatedBy)
	list.Row("request_id", common.RequestID)
	list.Row("remote_address", common.RemoteAddress)
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return fmt.Errorf("render provider: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		list.Row(name, console.Unquote(fields[name]))
	}
	return list.Flush()
}
