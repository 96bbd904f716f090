package command

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
)

const listOfProviders = `"providerd provider list"`

// providerFlags select providers.
type providerFlags struct {
	Kind      providerKind     `placeholder:"KIND" help:"Only this kind of provider: oauth2 or workspace_directory."`
	Name      filterText       `placeholder:"NAME" help:"Only providers with exactly this name."`
	ClientID  filterText       `placeholder:"ID" help:"Only the OAuth2 provider with exactly this client_id."`
	CreatedBy filterText       `placeholder:"NAME" help:"Only providers created with a token of this name."`
	Limit     console.Positive `placeholder:"N" help:"Print at most N; if there are more, a message on standard error gives the --after value of the next page."`
	Since     console.Time     `placeholder:"TIME" help:"Only providers newer than this duration, such as 30d, or this time, such as 2026-01-31T08:00:00Z."`
	After     console.Positive `placeholder:"PK" help:"Only providers with a pk above this one."`
}

// records returns the providers that the flags select.
func (f providerFlags) records(
	ctx context.Context, database *store.Store, messages *console.Messages,
) iter.Seq2[store.Record, error] {
	records := database.Providers(ctx, store.Filter{
		Kind: store.Kind(f.Kind), Name: string(f.Name), ClientID: string(f.ClientID), CreatedBy: string(f.CreatedBy),
		Since: time.Time(f.Since),
	}, int64(f.After))
	return console.Limit(records, int64(f.Limit), func(last store.Record) {
		messages.Note("there are more providers; continue with --after %d", last.Common().PK)
	})
}

// providerKind is a kind of provider.
type providerKind store.Kind

// UnmarshalText parses the name of a kind.
func (k *providerKind) UnmarshalText(text []byte) error {
	switch kind := store.Kind(text); kind {
	case store.KindOAuth2, store.KindWorkspaceDirectory:
		*k = providerKind(kind)
		return nil
	default:
		return fmt.Errorf("%q is not a kind of provider; use oauth2 or workspace_directory", text)
	}
}

// filterText is the value that a column must have. An empty one, as from a variable that is not set, would select
// everything.
type filterText string

// UnmarshalText refuses values that no column can have.
func (f *filterText) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("must not be empty; omit the flag to select everything")
	}
	*f = filterText(text)
	return nil
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
