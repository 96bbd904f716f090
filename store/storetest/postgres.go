package storetest

import (
	"context"
	"log/slog"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/seal"
)

// CreatePostgres opens a store over the PostgreSQL database at a URL, as a replica does. It creates the keyset file if
// there is none. It returns the errors of postgres.Create and store.Create.
func CreatePostgres(ctx context.Context, url, keyset string) (*store.Store, error) {
	parsed, err := postgres.ParseURL(url)
	if err != nil {
		return nil, err
	}
	if _, err := seal.ReadOrCreateMasterKeys(keyset); err != nil {
		return nil, err
	}
	database, err := postgres.Create(ctx, parsed, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return store.Create(ctx, database, keyset)
}
