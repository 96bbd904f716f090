package command

import (
	"encoding/json"
	"maps"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/gen/model"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// identify returns the field that identifies a rendered provider, and its secret.
func identify(rendered any) (identity, secret string) {
	switch response := rendered.(type) {
	case model.OAuth2Provider:
		return response.ClientID, response.ClientSecret
	case model.WorkspaceDirectoryProvider:
		return response.DelegatedSubject, console.Unquote(response.Credentials)
	default:
		return "", ""
	}
}

// requestFields returns the members of a request that creates the record. It omits values that are null or empty by
// default.
func requestFields(
	document *contract.Document, kind apply.Kind, record store.Record,
) (map[string]json.RawMessage, error) {
	fields, err := contract.Fields(record)
	if err != nil {
		return nil, err
	}
	known := document.RequestSchema(kind.Operation).Properties
	maps.DeleteFunc(fields, func(name string, value json.RawMessage) bool {
		property := known[name]
		return property == nil || string(value) == "null" || string(value) == `""` && property.Value.MinLength > 0
	})
	return fields, nil
}
