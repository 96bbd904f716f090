package command

import (
	"encoding/json"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/gen/api"
	"example.com/providerd/server"
	"example.com/providerd/store"
)

// render returns a record as the API returns it, with its secret masked unless reveal is set.
func render(record store.Record, reveal bool) any {
	switch record := record.(type) {
	case store.OAuth2Provider:
		response := server.ToAPIOAuth2(record)
		if !reveal {
			response.ClientSecret = console.Mask
		}
		return response
	case store.WorkspaceDirectoryProvider:
		response := server.ToAPIWorkspaceDirectory(record)
		if !reveal {
			response.Credentials = json.RawMessage(`"` + console.Mask + `"`)
		}
		return response
	default:
		return nil
	}
}

// identify returns the field that identifies a rendered provider, and its secret.
func identify(rendered any) (identity, secret string) {
	switch response := rendered.(type) {
	case api.OAuth2Provider:
		return response.ClientID, response.ClientSecret
	case api.WorkspaceDirectoryProvider:
		return response.DelegatedSubject, console.Unquote(response.Credentials)
	default:
		return "", ""
	}
}
