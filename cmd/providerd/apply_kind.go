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
	create    func(ctx context.Context, to *client.Providers, body []byte, options ...client.CreateOption) (stored, error)
}

// stored is what is told of a record; its secrets are not.
type stored struct {
	PK       int32  `json:"pk,omitempty"`
	ClientID string `json:"client_id,omitempty"`
}

func applyKinds() []applyKind {
	return []applyKind{
		{string(store.KindOAuth2), "providers_oauth2_create", createOAuth2},
		{string(store.KindWorkspaceDirectory), "providers_workspace_directory_create", createWorkspaceDirectory},
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

func createOAuth2(
	ctx context.Context, to *client.Providers, body []byte, options ...client.CreateOption,
) (stored, error) {
	var request client.OAuth2ProviderRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return stored{}, fmt.Errorf("read entry: %w", err)
	}
	record, err := to.CreateOAuth2(ctx, request, options...)
	if err != nil {
		return stored{}, err
	}
	return stored{PK: record.PK, ClientID: record.ClientID}, nil
}

func createWorkspaceDirectory(
	ctx context.Context, to *client.Providers, body []byte, options ...client.CreateOption,
) (stored, error) {
	var request client.WorkspaceDirectoryProviderRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return stored{}, fmt.Errorf("read entry: %w", err)
	}
	record, err := to.CreateWorkspaceDirectory(ctx, request, options...)
	if err != nil {
		return stored{}, err
	}
	return stored{PK: record.PK}, nil
}

// idempotencyKey is the same for an entry however often, where and in what order its file is applied.
func idempotencyKey(entry manifest.Entry) string {
	return fmt.Sprintf("apply/%s/%x", entry.Kind, sha256.Sum256([]byte(entry.ID)))
}
