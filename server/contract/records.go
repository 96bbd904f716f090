package contract

import (
	"encoding/json"
	"fmt"

	"example.com/providerd/gen/model"
	"example.com/providerd/store/records"
	"example.com/providerd/store/seal"
)

// Requested returns the record that a valid body requests, for a caller and with an idempotency key if any. A client_id
// and secret that the body omits are those of the stored record, from then on as if the server had chosen them, or are
// generated if stored is nil. It returns an error for an unknown kind.
func Requested(
	kind records.Kind, caller string, key *string, body []byte, stored records.Record,
) (records.Record, error) {
	switch kind {
	case records.KindOAuth2:
		var request model.OAuth2ProviderRequest
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, fmt.Errorf("read request: %w", err)
		}
		requested, isStored := stored.(records.OAuth2Provider)
		settings, generated := FromAPIOAuth2(request)
		if isStored {
			generated = keepChosen(&settings, generated, requested)
		}
		requested.Kind, requested.CreatedBy, requested.IdempotencyKey = kind, caller, key
		requested.Name, requested.OAuth2Settings, requested.Generated = request.Name, settings, generated
		return requested, nil
	case records.KindWorkspaceDirectory:
		var request model.WorkspaceDirectoryProviderRequest
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, fmt.Errorf("read request: %w", err)
		}
		requested, _ := stored.(records.WorkspaceDirectoryProvider)
		requested.Kind, requested.CreatedBy, requested.IdempotencyKey = kind, caller, key
		requested.Name, requested.WorkspaceDirectorySettings = request.Name, FromAPIWorkspaceDirectory(request)
		return requested, nil
	default:
		return nil, fmt.Errorf("%q is not a kind of provider", kind)
	}
}

// keepChosen keeps the stored values of what was generated, and returns what of the result the server has chosen.
func keepChosen(
	settings *records.OAuth2Settings, generated records.Generated, stored records.OAuth2Provider,
) records.Generated {
	if generated&records.GeneratedClientID != 0 {
		settings.ClientID = stored.ClientID
	} else if settings.ClientID == stored.ClientID {
		generated |= stored.Generated & records.GeneratedClientID
	}
	// A public client that becomes confidential needs a secret.
	isNew := stored.ClientSecret == seal.NewSecret("") && stored.ClientType != settings.ClientType
	if generated&records.GeneratedSecret != 0 && !isNew {
		settings.ClientSecret = stored.ClientSecret
	} else if settings.ClientSecret.Equal(stored.ClientSecret) {
		generated |= stored.Generated & records.GeneratedSecret
	}
	return generated
}

// Mask replaces secrets that are not shown.
const Mask = "********"

// ToAPI converts a record of any kind to its form in the API, with its secret masked unless reveal is set.
func ToAPI(record records.Record, reveal bool) any {
	switch record := record.(type) {
	case records.OAuth2Provider:
		response := ToAPIOAuth2(record)
		if !reveal {
			response.ClientSecret = Mask
		}
		return response
	case records.WorkspaceDirectoryProvider:
		response := ToAPIWorkspaceDirectory(record)
		if !reveal {
			response.Credentials = json.RawMessage(`"` + Mask + `"`)
		}
		return response
	default:
		return nil
	}
}

// Fields returns the members of what ToAPI returns. It returns an error for a record that cannot be written as JSON.
func Fields(record records.Record, reveal bool) (fields map[string]json.RawMessage, err error) {
	text, err := json.Marshal(ToAPI(record, reveal))
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		return nil, fmt.Errorf("render provider: %w", err)
	}
	return fields, nil
}
