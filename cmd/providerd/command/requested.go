package command

import (
	"encoding/json"
	"fmt"
	"maps"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/gen/api"
	"example.com/providerd/server"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// applyRecords returns the conversions for apply.
func applyRecords() apply.Records {
	return apply.Records{Requested: requestedRecord, Fields: renderedFields, Undo: undoCommand}
}

// requestedRecord returns the record that a valid body requests, with an idempotency key if there is one. A client_id
// and secret that the body omits are those of the stored record, from then on as if the server had chosen them, or, if
// there is none, generated.
func requestedRecord(kind store.Kind, key *string, body []byte, stored store.Record) (store.Record, error) {
	switch kind {
	case store.KindOAuth2:
		request, err := readRequest[api.OAuth2ProviderRequest](body)
		if err != nil {
			return nil, err
		}
		requested, isStored := stored.(store.OAuth2Provider)
		settings, generated := server.FromAPIOAuth2(request)
		if isStored {
			generated = keepChosen(&settings, generated, requested)
		}
		requested.Kind, requested.Name, requested.IdempotencyKey = kind, request.Name, key
		requested.OAuth2Settings, requested.Generated = settings, generated
		return requested, nil
	case store.KindWorkspaceDirectory:
		request, err := readRequest[api.WorkspaceDirectoryProviderRequest](body)
		if err != nil {
			return nil, err
		}
		requested, _ := stored.(store.WorkspaceDirectoryProvider)
		requested.Kind, requested.Name, requested.IdempotencyKey = kind, request.Name, key
		requested.WorkspaceDirectorySettings = server.FromAPIWorkspaceDirectory(request)
		return requested, nil
	default:
		return nil, fmt.Errorf("%q is not a kind of provider", kind)
	}
}

// keepChosen keeps what a stored record has of what a request has generated, and returns what of the result the server
// has chosen.
func keepChosen(
	settings *store.OAuth2Settings, generated store.Generated, stored store.OAuth2Provider,
) store.Generated {
	if generated&store.GeneratedClientID != 0 {
		settings.ClientID = stored.ClientID
	} else if settings.ClientID == stored.ClientID {
		generated |= stored.Generated & store.GeneratedClientID
	}
	// A public client that becomes confidential needs a secret.
	isNew := stored.ClientSecret == store.NewSecret("") && stored.ClientType != settings.ClientType
	if generated&store.GeneratedSecret != 0 && !isNew {
		settings.ClientSecret = stored.ClientSecret
	} else if settings.ClientSecret.Equal(stored.ClientSecret) {
		generated |= stored.Generated & store.GeneratedSecret
	}
	return generated
}

func readRequest[Request any](body []byte) (request Request, err error) {
	if err := json.Unmarshal(body, &request); err != nil {
		return request, fmt.Errorf("read request: %w", err)
	}
	return request, nil
}

// renderedFields returns the members of a record as the API returns it.
func renderedFields(record store.Record) (map[string]json.RawMessage, error) {
	text, err := json.Marshal(render(record, true))
	if err != nil {
		return nil, fmt.Errorf("render provider: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("render provider: %w", err)
	}
	return fields, nil
}

// requestFields returns the members of a request that creates the record. It omits values that are null or empty by
// default.
func requestFields(
	contract *contract.Document, kind apply.Kind, record store.Record,
) (map[string]json.RawMessage, error) {
	fields, err := renderedFields(record)
	if err != nil {
		return nil, err
	}
	known := contract.RequestSchema(kind.Operation).Properties
	maps.DeleteFunc(fields, func(name string, value json.RawMessage) bool {
		property := known[name]
		return property == nil || string(value) == "null" || string(value) == `""` && property.Value.MinLength > 0
	})
	return fields, nil
}
