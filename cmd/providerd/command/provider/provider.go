// Package provider implements "providerd provider", which creates, shows, changes, deletes and exports providers.
//
// Start with Commands.
package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/gen/model"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// Commands has the commands of "providerd provider".
type Commands struct {
	List   listCommand   `cmd:"" aliases:"ls" help:"List providers, ordered by pk."`
	Show   showCommand   `cmd:"" usage:"(<pk> | --client-id=ID) [flags]" help:"Show one provider with all its fields."`
	Export exportCommand `cmd:"" help:"Write providers to a file for \"providerd apply\"."`
	Create createCommand `cmd:"" report:"" help:"Create a provider."`
	Update updateCommand `cmd:"" report:"" help:"Change fields of a provider."`
	Delete deleteCommand `cmd:"" aliases:"rm" help:"Delete providers."`
}

type listCommand struct {
	console.DatabaseFlags
	providerFlags
	console.ListFormat
	Reveal bool `xor:"what" help:"Print secrets, which are masked otherwise."`
	Advice bool `xor:"what" help:"List deviations from best practice, without values, instead of the providers."`
}

// Run lists the providers, or advice for them.
func (c *listCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	providers := console.List[store.Record]{
		Headings: "PK,KIND,NAME,CLIENT ID OR SUBJECT,SECRET,APPLICATION,BACKCHANNEL,BY,CREATED",
		Rows:     c.rows,
		Value:    func(record store.Record) any { return contract.ToAPI(record, c.Reveal) },
	}
	return c.WithStore(ctx, func(database *store.Store) error {
		records := c.records(ctx, database, messages)
		if c.Reveal || c.Advice {
			records = database.Opened(ctx, records)
		}
		if c.Advice {
			return c.advise(out, messages, records)
		}
		return providers.Print(out, messages, c.Output, records)
	})
}

func (c *listCommand) advise(
	out *console.Output, messages *console.Messages, records iter.Seq2[store.Record, error],
) error {
	read, found := 0, 0
	list := console.List[advised]{
		Headings: "PK,KIND,FIELD,CODE,SECTION,ADVICE", Rows: advised.rows,
	}
	err := list.Print(out, messages, c.Output, func(yield func(advised, error) bool) {
		for record, err := range records {
			var provider advised
			if err == nil {
				read++
				if provider = adviceFor(record); len(provider.Advice) == 0 {
					continue
				}
				found++
			}
			if !yield(provider, err) {
				return
			}
		}
	})
	if err == nil {
		messages.Note("advice for %d of %s", found, console.Count(read, "provider"))
	}
	return err
}

func (c *listCommand) rows(record store.Record) [][]string {
	common := record.Common()
	identity, secret := identify(contract.ToAPI(record, c.Reveal))
	if !c.Reveal {
		secret = ""
	}
	return [][]string{{
		fmt.Sprint(common.PK), string(common.Kind), common.Name, identity, secret, common.Application.Slug,
		common.Backchannel.Application.Slug, common.CreatedBy, console.Timestamp(common.CreatedAt.Time),
	}}
}

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
		var record store.Record
		var err error
		if c.ClientID != "" {
			record, err = database.ProviderByClientID(ctx, c.ClientID)
		} else {
			record, err = database.Provider(ctx, int64(c.PK))
		}
		if err != nil {
			return console.SuggestList(err, listOfProviders)
		}
		return c.show(out, record)
	})
}

func (c *showCommand) show(out *console.Output, record store.Record) error {
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

// identify returns the field that identifies a rendered provider, and its secret.
func identify(rendered any) (identity, secret string) {
	switch response := rendered.(type) {
	case model.OAuth2Provider:
		return response.ClientID, response.ClientSecret
	case model.WorkspaceDirectoryProvider:
		return response.DelegatedSubject, console.Unquote(response.Credentials)
	default:
		return "", ""
	}
}

// requestFields returns the members of a request that creates the record. It omits values that are null or empty by
// default.
func requestFields(
	document *contract.Document, kind apply.Kind, record store.Record,
) (map[string]json.RawMessage, error) {
	fields, err := contract.Fields(record, true)
	if err != nil {
		return nil, err
	}
	known := document.RequestSchema(kind.Operation).Properties
	maps.DeleteFunc(fields, func(name string, value json.RawMessage) bool {
		property := known[name]
		return property == nil || string(value) == "null" || string(value) == `""` && property.Value.MinLength > 0
	})
	return fields, nil
}

// advised is a provider with its advice.
type advised struct {
	PK     int64           `json:"pk"`
	Kind   store.Kind      `json:"kind"`
	Advice []advice.Advice `json:"advice"`
}

func adviceFor(record store.Record) advised {
	return advised{PK: record.Common().PK, Kind: record.Common().Kind, Advice: apply.Advise(record)}
}

func (p advised) rows() (rows [][]string) {
	for _, a := range p.Advice {
		rows = append(rows, []string{fmt.Sprint(p.PK), string(p.Kind), a.Pointer, a.Code, a.Section, a.Detail})
	}
	return rows
}

// noteAdvice prints the advice for the settings of a record.
func noteAdvice(messages *console.Messages, record store.Record) {
	for _, advice := range adviceFor(record).Advice {
		messages.Note("advice: %s: %s (%s)", advice.Pointer, advice.Detail, advice.Section)
	}
}
