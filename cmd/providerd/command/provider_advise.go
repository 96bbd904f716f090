package command

import (
	"context"
	"fmt"
	"iter"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/server/advice"
	"example.com/providerd/store"
)

type providerAdviseCommand struct {
	flags.DatabaseFlags
	flags.ListFormat
	PK *int64 `arg:"" optional:"" help:"pk of the provider. Without it, all providers are checked."`
}

// advised is a provider with its advice.
type advised struct {
	PK     int64           `json:"pk"`
	Kind   store.Kind      `json:"kind"`
	Advice []advice.Advice `json:"advice"`
}

// Run prints the providers for which there is advice.
func (c *providerAdviseCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		read, found := 0, 0
		providers := func(yield func(advised, error) bool) {
			for record, err := range c.records(ctx, database) {
				var provider advised
				if err == nil {
					read++
					if provider = advise(record); len(provider.Advice) == 0 {
						continue
					}
					found++
				}
				if !yield(provider, err) {
					return
				}
			}
		}
		if err := advisedProviders().Print(out, messages, c.Output, providers); err != nil {
			return err
		}
		messages.Note("advice for %d of %s", found, console.Count(read, "provider", "providers"))
		return nil
	})
}

// records returns all providers, or the requested one.
func (c *providerAdviseCommand) records(ctx context.Context, database *store.Store) iter.Seq2[store.Record, error] {
	if c.PK == nil {
		return database.Opened(ctx, database.Providers(ctx, store.Filter{}, 0))
	}
	return func(yield func(store.Record, error) bool) {
		record, err := database.Provider(ctx, *c.PK)
		yield(record, console.SuggestList(err, listOfProviders))
	}
}

func advise(record store.Record) advised {
	provider := advised{PK: record.Common().PK, Kind: record.Common().Kind}
	switch record := record.(type) {
	case store.OAuth2Provider:
		provider.Advice = advice.OAuth2(record.OAuth2Settings)
	case store.WorkspaceDirectoryProvider:
		provider.Advice = advice.WorkspaceDirectory(record.WorkspaceDirectorySettings)
	}
	return provider
}

func advisedProviders() console.List[advised] {
	return console.List[advised]{
		Headings: "PK,KIND,FIELD,CODE,SECTION,ADVICE",
		Rows:     advised.rows,
		Value:    func(provider advised) any { return provider },
	}
}

func (p advised) rows() [][]string {
	var rows [][]string
	for _, a := range p.Advice {
		rows = append(rows, []string{fmt.Sprint(p.PK), string(p.Kind), a.Pointer, a.Code, a.Section, a.Detail})
	}
	return rows
}
