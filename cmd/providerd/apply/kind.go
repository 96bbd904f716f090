package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/gen/client"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// Kind is a kind of provider.
type Kind struct {
	Name      string
	Operation string
	secret    string
}

// Kinds returns the kinds of provider, sorted by operationId.
func Kinds() []Kind {
	return []Kind{
		{string(store.KindOAuth2), "providers_oauth2_create", "client_secret"},
		{string(store.KindWorkspaceDirectory), "providers_workspace_directory_create", "credentials"},
	}
}

// Operations returns the operationIds of the creates, sorted.
func Operations() []string {
	var operations []string
	for _, kind := range Kinds() {
		operations = append(operations, kind.Operation)
	}
	return operations
}

// SecretField returns the name of the field with the secret. It can be an empty string or object.
func (k Kind) SecretField() string { return k.secret }

// KindOf returns the kind of a provider. It returns an error if there is no such kind.
func KindOf(name store.Kind) (Kind, error) {
	for _, kind := range Kinds() {
		if kind.Name == string(name) {
			return kind, nil
		}
	}
	return Kind{}, fmt.Errorf("%q is not a kind of provider", name)
}

func manifestKinds(contract *contract.Document) []manifest.Kind {
	var kinds []manifest.Kind
	for _, kind := range Kinds() {
		kinds = append(kinds, manifest.Kind{Name: kind.Name, Schema: contract.RequestSchema(kind.Operation)})
	}
	return kinds
}

// Advise returns the advice for a record.
func Advise(record store.Record) []advice.Advice {
	switch record := record.(type) {
	case store.OAuth2Provider:
		return advice.OAuth2(record.OAuth2Settings)
	case store.WorkspaceDirectoryProvider:
		return advice.WorkspaceDirectory(record.WorkspaceDirectorySettings)
	default:
		return nil
	}
}

// maxClientIDBytes limits the client_id in a response, which has at most 255 characters.
const maxClientIDBytes = 4 * 255

// create sends a body to a server, and returns the pk and client_id of the response.
func (k Kind) create(
	ctx context.Context, to *client.Providers, body []byte, options ...client.CreateOption,
) (pk int64, clientID string, err error) {
	if k.Name == string(store.KindOAuth2) {
		record, err := send(ctx, to.CreateOAuth2, body, options)
		if err != nil {
			return 0, "", err
		}
		return record.PK, console.Truncate(record.ClientID, maxClientIDBytes), nil
	}
	record, err := send(ctx, to.CreateWorkspaceDirectory, body, options)
	if err != nil {
		return 0, "", err
	}
	return record.PK, "", nil
}

func send[Request, Record any](
	ctx context.Context, create func(context.Context, Request, ...client.CreateOption) (*Record, error),
	body []byte, options []client.CreateOption,
) (*Record, error) {
	var request Request
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, fmt.Errorf("read entry: %w", err)
	}
	return create(ctx, request, options...)
}

// keyPrefix begins the idempotency keys of entries of a kind.
func keyPrefix(kind string) string { return "apply/" + kind + "/" }

// idempotencyKey returns the key of an entry with an id.
func idempotencyKey(kind, id string) string {
	return fmt.Sprintf("%s%x", keyPrefix(kind), sha256.Sum256([]byte(id)))
}

// clientIDOf returns the client_id of an entry; "" if it has none.
func clientIDOf(entry manifest.Entry) string {
	var body struct {
		ClientID string `json:"client_id"`
	}
	if json.Unmarshal(entry.Body, &body) != nil {
		return ""
	}
	return body.ClientID
}
