package provider

import (
	"context"
	"fmt"
	"iter"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/gen/model"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
	"example.com/providerd/store/records"
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
	providers := console.List[records.Record]{
		Headings: "PK,KIND,NAME,CLIENT ID OR SUBJECT,SECRET,APPLICATION,BACKCHANNEL,BY,CREATED",
		Rows:     c.rows,
		Value:    func(record records.Record) any { return contract.ToAPI(record, c.Reveal) },
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

// advised is a provider with its advice.
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
