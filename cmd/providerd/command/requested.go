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

// requestedRecord returns a stored record with the name and the settings of the body of a valid request. A client_id
// and secret that the body omits stay.
func requestedRecord(body []byte, stored store.Record) (store.Record, error) {
	switch stored := stored.(type) {
	case store.OAuth2Provider:
		var request api.OAuth2ProviderRequest
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, fmt.Errorf("read new values: %w", err)
		}
		requested := stored
		requested.Name, requested.OAuth2Settings = request.Name, server.FromAPIOAuth2(request)
		if request.ClientID == nil {
			requested.ClientID = stored.ClientID
		}
		if request.ClientSecret == nil {
			requested.ClientSecret = stored.ClientSecret
		}
		return requested, nil
	case store.WorkspaceDirectoryProvider:
		var request api.WorkspaceDirectoryProviderRequest
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, fmt.Errorf("read new values: %w", err)
		}
		requested := stored
		requested.Name, requested.WorkspaceDirectorySettings = request.Name, server.FromAPIWorkspaceDirectory(request)
		return requested, nil
	default:
		return nil, fmt.Errorf("a record is a %T", stored)
	}
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
