// Package provider implements "providerd provider", which creates, shows, changes, deletes and exports providers.
package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/gen/model"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
	"example.com/providerd/store/records"
)

// Commands has the commands of "providerd provider".
type Commands struct {
	List   listCommand   `cmd:"" aliases:"ls" help:"List providers, ordered by pk."`
	Show   showCommand   `cmd:"" synonyms:"get describe view" usage:"(<pk> | --client-id=ID) [flags]" help:"Show one provider with all its fields."`
	Export exportCommand `cmd:"" help:"Write providers to a file for \"providerd apply\"."`
	Create createCommand `cmd:"" synonyms:"add new" report:"" help:"Create a provider."`
	Update updateCommand `cmd:"" synonyms:"edit set patch" report:"" help:"Change fields of a provider."`
	Delete deleteCommand `cmd:"" aliases:"rm" synonyms:"remove del destroy" help:"Delete providers."`
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
	providers := console.List[records.Record]{
		Headings: "PK,KIND,NAME,CLIENT ID OR SUBJECT,SECRET,APPLICATION,BACKCHANNEL,BY,CREATED",
		Rows:     c.rows,
		Value:    func(record records.Record) any { return contract.ToAPI(record, c.Reveal) },
		None:     (c.Name + c.ClientID + c.CreatedBy).WhenNone(),
	}
	if c.After > 0 {
		providers.None += fmt.Sprintf("; --after omits pks up to %d", c.After)
	}
	return c.WithStore(ctx, func(database *store.Store) error {
		records := c.records(ctx, database, messages)
		if c.Reveal || c.Advice {
			records = database.Providers.Opened(ctx, records)
		}
		if c.Advice {
			return c.advise(out, messages, records)
		}
		return providers.Print(out, messages, c.Output, records)
	})
}

func (c *listCommand) rows(record records.Record) [][]string {
	var identity, secret string
	switch response := contract.ToAPI(record, c.Reveal).(type) {
	case model.OAuth2Provider:
		identity, secret = response.ClientID, response.ClientSecret
	case model.WorkspaceDirectoryProvider:
		identity, secret = response.DelegatedSubject, console.Unquote(response.Credentials)
	}
	if !c.Reveal {
		secret = ""
	}
	common := record.Common()
	return [][]string{{
		fmt.Sprint(common.PK), string(common.Kind), common.Name, identity, secret, common.Application.Slug,
		common.Backchannel.Application.Slug, common.CreatedBy, console.Timestamp(common.CreatedAt.Time),
	}}
}

func (c *listCommand) advise(
	out *console.Output, messages *console.Messages, records iter.Seq2[records.Record, error],
) error {
	read, found := 0, 0
	list := console.List[advised]{Headings: "PK,KIND,FIELD,CODE,SECTION,ADVICE", Rows: advised.rows}
	err := list.Print(out, messages, c.Output, func(yield func(advised, error) bool) {
		for record, err := range records {
			var provider advised
			if err == nil {
				read++
				provider = advised{record.Common().PK, record.Common().Kind, apply.Advise(record)}
				if len(provider.Advice) == 0 {
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

type advised struct {
	PK     int64           `json:"pk"`
	Kind   records.Kind    `json:"kind"`
	Advice []advice.Advice `json:"advice"`
}

func (p advised) rows() (rows [][]string) {
	for _, a := range p.Advice {
		rows = append(rows, []string{fmt.Sprint(p.PK), string(p.Kind), a.Pointer, a.Code, a.Section, a.Detail})
	}
	return rows
}

type showCommand struct {
	console.ListFlags
	Reveal   bool             `help:"Print secrets, which are masked otherwise."`
	PK       console.Positive `arg:"" optional:"" help:"pk of the provider, from \"providerd provider list\"."`
	ClientID string           `placeholder:"ID" help:"client_id of the provider, instead of its pk."`
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

const listOfProviders = `"providerd provider list"`

type providerFlags struct {
	Kind      console.ProviderKind `placeholder:"KIND" help:"Only this kind of provider: oauth2 or workspace_directory."`
	Name      console.FilterText   `placeholder:"NAME" help:"Only providers with exactly this name."`
	ClientID  console.FilterText   `placeholder:"ID" help:"Only the OAuth2 provider with exactly this client_id."`
	CreatedBy console.FilterText   `placeholder:"NAME" help:"Only providers created with a token of this name."`
	Limit     console.Positive     `placeholder:"N" help:"Print at most N; if there are more, a message on standard error gives the --after value of the next page."`
	Since     console.Time         `placeholder:"TIME" help:"Only providers newer than this duration, such as 30d, or this time, such as 2026-01-31T08:00:00Z."`
	After     console.Positive     `placeholder:"PK" help:"Only providers with a pk above this one."`
}

func (f providerFlags) records(
	ctx context.Context, database *store.Store, messages *console.Messages,
) iter.Seq2[records.Record, error] {
	found := database.Providers.List(ctx, store.Filter{
		Kind: records.Kind(f.Kind), Name: string(f.Name), ClientID: string(f.ClientID), CreatedBy: string(f.CreatedBy),
		Since: time.Time(f.Since),
	}, int64(f.After))
	return console.Limit(found, int64(f.Limit), func(last records.Record) {
		messages.Note("there are more providers; continue with --after %d", last.Common().PK)
	})
}
