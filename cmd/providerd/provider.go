package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"example.com/providerd/store"
)

// formatJSON is the form of output and log for programs.
const formatJSON = "json"

type providerCommands struct {
	List providerListCommand `cmd:"" help:"List all providers, in the order of their pk."`
	Show providerShowCommand `cmd:"" help:"Show one provider with all its fields."`
}

// outputFlags say how records are printed.
type outputFlags struct {
	Output string `default:"table" enum:"table,json" help:"Form of the output: ${enum} (default ${default})."`
	Reveal bool   `help:"Print secrets, too. Without it they are masked."`
}

type providerListCommand struct {
	databaseFlag
	outputFlags
}

// Run lists the providers.
func (c *providerListCommand) Run(ctx context.Context, out *output) error {
	return c.withStore(ctx, func(database *store.Store) error {
		if c.Output == formatJSON {
			return c.listJSON(ctx, out, database)
		}
		return c.listTable(ctx, out, database)
	})
}

// each hands on every record that can be read. The damaged ones are its error.
func (c *providerListCommand) each(
	ctx context.Context, database *store.Store, show func(record store.Record) error,
) error {
	var damaged []error
	for record, err := range database.Providers(ctx) {
		if errors.Is(err, store.ErrDamaged) {
			damaged = append(damaged, err)
			continue
		}
		if err != nil {
			return err
		}
		if err := show(record); err != nil {
			return err
		}
	}
	return errors.Join(damaged...)
}

// listJSON prints one array, a record at a time, so that any number of them fits into memory.
func (c *providerListCommand) listJSON(ctx context.Context, out *output, database *store.Store) error {
	separator := "["
	err := c.each(ctx, database, func(record store.Record) error {
		text, err := json.Marshal(render(record, c.Reveal))
		if err != nil {
			return fmt.Errorf("render provider %d: %w", record.Common().PK, err)
		}
		_, err = out.Write(append([]byte(separator+"\n"), text...))
		separator = ","
		return err
	})
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		// Without its end, nothing takes the part that was read for the whole.
		return err
	}
	end := "\n]"
	if separator == "[" {
		end = separator + end
	}
	return errors.Join(out.line(end), err)
}

func (c *providerListCommand) listTable(ctx context.Context, out io.Writer, database *store.Store) error {
	list := newTable(out,
		"PK", "KIND", "NAME", "CLIENT ID OR SUBJECT", "SECRET", "APPLICATION", "BACKCHANNEL", "CREATED", "BY")
	err := c.each(ctx, database, func(record store.Record) error {
		common := record.Common()
		identity, secret := identify(render(record, c.Reveal))
		list.row(fmt.Sprint(common.PK), string(common.Kind), common.Name, identity, secret, common.Application.Slug,
			common.Backchannel.Application.Slug, timestamp(common.CreatedAt), common.CreatedBy)
		return nil
	})
	return errors.Join(list.flush(), err)
}

type providerShowCommand struct {
	databaseFlag
	outputFlags
	PK       int32  `arg:"" optional:"" help:"pk of the provider."`
	ClientID string `placeholder:"ID" help:"client_id of the provider, in place of its pk."`
}

// Validate demands exactly one way to name the provider.
func (c *providerShowCommand) Validate() error {
	if (c.PK == 0) == (c.ClientID == "") {
		return errors.New("give either the PK of a provider or --client-id")
	}
	return nil
}

// Run shows the provider.
func (c *providerShowCommand) Run(ctx context.Context, out *output) error {
	return c.withStore(ctx, func(database *store.Store) error {
		var record store.Record
		var err error
		if c.ClientID != "" {
			record, err = database.ProviderByClientID(ctx, c.ClientID)
		} else {
			record, err = database.Provider(ctx, c.PK)
		}
		if err != nil {
			return err
		}
		return c.show(out, record)
	})
}

func (c *providerShowCommand) show(out *output, record store.Record) error {
	text, err := json.Marshal(render(record, c.Reveal))
	if err != nil {
		return fmt.Errorf("render provider: %w", err)
	}
	if c.Output == formatJSON {
		var indented bytes.Buffer
		if err := json.Indent(&indented, text, "", "  "); err != nil {
			return fmt.Errorf("render provider: %w", err)
		}
		return out.line(indented.String())
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return fmt.Errorf("render provider: %w", err)
	}
	common := record.Common()
	list := newTable(out)
	list.row("kind", string(common.Kind))
	list.row("created_at", timestamp(common.CreatedAt))
	list.row("created_by", common.CreatedBy)
	list.row("request_id", common.RequestID)
	list.row("remote_address", common.RemoteAddress)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		list.row(name, plain(fields[name]))
	}
	return list.flush()
}

// plain is a string without its JSON, and any other value as it stands.
func plain(value json.RawMessage) string {
	var text *string
	if json.Unmarshal(value, &text) != nil || text == nil {
		return string(value)
	}
	return *text
}
