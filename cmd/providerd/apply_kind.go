package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"example.com/providerd/cmd/providerd/manifest"
	"example.com/providerd/gen/client"
	"example.com/providerd/server"
	"example.com/providerd/store"
)

// applyKind is what a kind of provider is created with.
type applyKind struct {
	name      string
	operation string
	create    createFunc
}

type createFunc func(
	ctx context.Context, to *client.Providers, body []byte, options ...client.CreateOption,
) (stored, error)

// stored is what is told of a record; its secrets are not.
type stored struct {
	PK       int32  `json:"pk,omitempty"`
	ClientID string `json:"client_id,omitempty"`
}

func applyKinds() []applyKind {
	return []applyKind{
		{
			string(store.KindOAuth2), "providers_oauth2_create",
			creator((*client.Providers).CreateOAuth2, func(record *client.OAuth2Provider) stored {
				return stored{PK: record.PK, ClientID: shortened(record.ClientID, maxClientIDBytes)}
			}),
		},
		{
			string(store.KindWorkspaceDirectory), "providers_workspace_directory_create",
			creator((*client.Providers).CreateWorkspaceDirectory, func(record *client.WorkspaceDirectoryProvider) stored {
				return stored{PK: record.PK}
			}),
		},
	}
}

func kindOf(entry manifest.Entry) (applyKind, error) {
	for _, kind := range applyKinds() {
		if kind.name == entry.Kind {
			return kind, nil
		}
	}
	return applyKind{}, fmt.Errorf("%q is not a kind of provider", entry.Kind)
}

func manifestKinds(contract *server.Contract) []manifest.Kind {
	var kinds []manifest.Kind
	for _, kind := range applyKinds() {
		kinds = append(kinds, manifest.Kind{Name: kind.name, Schema: contract.RequestSchema(kind.operation)})
	}
	return kinds
}

// creator sends a body through a method of the SDK, and tells what is stored.
func creator[Request, Record any](
	send func(*client.Providers, context.Context, Request, ...client.CreateOption) (*Record, error),
	tell func(*Record) stored,
) createFunc {
	return func(
		ctx context.Context, to *client.Providers, body []byte, options ...client.CreateOption,
	) (stored, error) {
		var request Request
		if err := json.Unmarshal(body, &request); err != nil {
			return stored{}, fmt.Errorf("read entry: %w", err)
		}
		record, err := send(to, ctx, request, options...)
		if err != nil {
			return stored{}, err
		}
		return tell(record), nil
	}
}

// idempotencyKey is the same for an entry however often, where and in what order its file is applied.
func idempotencyKey(entry manifest.Entry) string {
	return fmt.Sprintf("apply/%s/%x", entry.Kind, sha256.Sum256([]byte(entry.ID)))
}
