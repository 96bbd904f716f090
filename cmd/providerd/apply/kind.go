package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/gen/client"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// Kind is a kind of provider and how to create one.
type Kind struct {
	Name      string
	Operation string
	create    sendFunc[stored]
	// advise returns the advice for a valid body.
	advise func(body []byte) ([]advice.Advice, error)
	// sent returns the body that the SDK sends for that of an entry.
	sent func(body []byte) ([]byte, error)
}

// sendFunc sends a body to a server.
type sendFunc[Response any] func(
	ctx context.Context, to *client.Providers, body []byte, options ...client.CreateOption,
) (*Response, error)

// maxClientIDBytes limits the client_id in a response, which has at most 255 characters.
const maxClientIDBytes = 255 * utf8.UTFMax

// stored is what the output contains of a record.
type stored struct {
	PK       int64  `json:"pk,omitempty"`
	ClientID string `json:"client_id,omitempty"`
}

// Kinds returns the kinds of provider, sorted by operationId.
func Kinds() []Kind {
	return []Kind{
		{
			string(store.KindOAuth2), "providers_oauth2_create",
			creator((*client.Providers).CreateOAuth2, func(record *client.OAuth2Provider) *stored {
				return &stored{PK: record.PK, ClientID: console.Truncate(record.ClientID, maxClientIDBytes)}
			}),
			adviseOAuth2,
			sentBody[client.OAuth2ProviderRequest],
		},
		{
			string(store.KindWorkspaceDirectory), "providers_workspace_directory_create",
			creator((*client.Providers).CreateWorkspaceDirectory, func(record *client.WorkspaceDirectoryProvider) *stored {
				return &stored{PK: record.PK}
			}),
			adviseWorkspaceDirectory,
			sentBody[client.WorkspaceDirectoryProviderRequest],
		},
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
func (k Kind) SecretField() string {
	if k.Name == string(store.KindOAuth2) {
		return secretOfOAuth2
	}
	return secretOfDirectory
}

const secretOfOAuth2, secretOfDirectory = "client_secret", "credentials"

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

// sender returns a sendFunc that uses a method of the SDK.
func sender[Request, Response any](
	send func(*client.Providers, context.Context, Request, ...client.CreateOption) (*Response, error),
) sendFunc[Response] {
	return func(
		ctx context.Context, to *client.Providers, body []byte, options ...client.CreateOption,
	) (*Response, error) {
		request, err := readEntry[Request](body)
		if err != nil {
			return nil, err
		}
		return send(to, ctx, request, options...)
	}
}

// creator is like sender, for a create.
func creator[Request, Record any](
	send func(*client.Providers, context.Context, Request, ...client.CreateOption) (*Record, error),
	tell func(*Record) *stored,
) sendFunc[stored] {
	create := sender(send)
	return func(
		ctx context.Context, to *client.Providers, body []byte, options ...client.CreateOption,
	) (*stored, error) {
		record, err := create(ctx, to, body, options...)
		if err != nil {
			return nil, err
		}
		return tell(record), nil
	}
}

func readEntry[Request any](body []byte) (request Request, err error) {
	if err := json.Unmarshal(body, &request); err != nil {
		return request, fmt.Errorf("read entry: %w", err)
	}
	return request, nil
}

func sentBody[Request any](body []byte) ([]byte, error) {
	request, err := readEntry[Request](body)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("write entry: %w", err)
	}
	return text, nil
}

// keyPrefix begins the idempotency keys of entries.
const keyPrefix = "apply/"

// idempotencyKey returns the key of an entry with an id.
func idempotencyKey(kind, id string) string {
	return fmt.Sprintf("%s%s/%x", keyPrefix, kind, sha256.Sum256([]byte(id)))
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
