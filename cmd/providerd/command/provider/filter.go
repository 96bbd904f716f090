package provider

import (
	"context"
	"fmt"
	"iter"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
	"example.com/providerd/store/records"
)

const listOfProviders = `"providerd provider list"`

// providerFlags select providers.
type providerFlags struct {
	Kind      console.ProviderKind `placeholder:"KIND" help:"Only this kind of provider: oauth2 or workspace_directory."`
	Name      console.FilterText   `placeholder:"NAME" help:"Only providers with exactly this name."`
	ClientID  console.FilterText   `placeholder:"ID" help:"Only the OAuth2 provider with exactly this client_id."`
	CreatedBy console.FilterText   `placeholder:"NAME" help:"Only providers created with a token of this name."`
	Limit     console.Positive     `placeholder:"N" help:"Print at most N; if there are more, a message on standard error gives the --after value of the next page."`
	Since     console.Time         `placeholder:"TIME" help:"Only providers newer than this duration, such as 30d, or this time, such as 2026-01-31T08:00:00Z."`
	After     console.Positive     `placeholder:"PK" help:"Only providers with a pk above this one."`
}

// records returns the providers that the flags select.
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

// providerPK is the pk of a provider.
type providerPK int64

// UnmarshalText parses a pk.
func (p *providerPK) UnmarshalText(text []byte) error {
	if err := (*console.Positive)(p).UnmarshalText(text); err != nil {
		return fmt.Errorf("%w; \"providerd provider list --name NAME\" shows the pk of a provider", err)
	}
	return nil
}
