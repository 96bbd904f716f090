package provider

import (
	"context"
	"fmt"
	"iter"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/gen/model"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

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
