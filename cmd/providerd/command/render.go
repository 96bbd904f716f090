package command

import (
	"encoding/json"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/gen/api"
	"example.com/providerd/server"
	"example.com/providerd/store"
)

// render turns a record into what the API answers, with the secrets masked unless they are to be revealed.
func render(record store.Record, reveal bool) any {
	switch record := record.(type) {
	case store.OAuth2Provider:
		answer := server.ToAPIOAuth2(record)
		if !reveal {
			answer.ClientSecret = console.Mask
		}
		return answer
	case store.WorkspaceDirectoryProvider:
		answer := server.ToAPIWorkspaceDirectory(record)
		if !reveal {
			answer.Credentials = json.RawMessage(`"` + console.Mask + `"`)
		}
		return answer
	default:
		return nil
	}
}

// identify returns what tells a rendered provider from others, and its secret.
func identify(rendered any) (identity, secret string) {
	switch answer := rendered.(type) {
	case api.OAuth2Provider:
		return answer.ClientID, answer.ClientSecret
	case api.WorkspaceDirectoryProvider:
		return answer.DelegatedSubject, console.Unquote(answer.Credentials)
	default:
		return "", ""
	}
}
