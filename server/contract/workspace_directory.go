package contract

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"example.com/providerd/gen/model"
	"example.com/providerd/store/records"
	"example.com/providerd/store/seal"
)

// FromAPIWorkspaceDirectory converts a valid request to settings. Fields that are absent or null get their defaults.
func FromAPIWorkspaceDirectory(request model.WorkspaceDirectoryProviderRequest) records.WorkspaceDirectorySettings {
	byDefault := records.DefaultWorkspaceDirectory()
	return records.WorkspaceDirectorySettings{
		PropertyMappings:           valueOr(request.PropertyMappings, []uuid.UUID{}),
		PropertyMappingsGroup:      valueOr(request.PropertyMappingsGroup, []uuid.UUID{}),
		DelegatedSubject:           request.DelegatedSubject,
		Credentials:                seal.NewSecret(compactJSON(request.Credentials)),
		Scopes:                     textOr(request.Scopes, byDefault.Scopes),
		ExcludeUsersServiceAccount: valueOr(request.ExcludeUsersServiceAccount, byDefault.ExcludeUsersServiceAccount),
		FilterGroup:                request.FilterGroup,
		UserDeleteAction:           textOr(request.UserDeleteAction, byDefault.UserDeleteAction),
		GroupDeleteAction:          textOr(request.GroupDeleteAction, byDefault.GroupDeleteAction),
		DefaultGroupEmailDomain:    request.DefaultGroupEmailDomain,
	}
}

// compactJSON removes white space and unnecessary escapes from valid JSON. A replay may send that shortest form, and
// the memory reserved for its response is estimated from the body. The store relies on the equal length of credentials
// that are the same.
func compactJSON(text json.RawMessage) string {
	short, err := jsontext.AppendFormat(nil, text, jsontext.AllowDuplicateNames(true))
	if err != nil {
		return string(text)
	}
	return string(short)
}

// ToAPIWorkspaceDirectory converts a record to its form in the API.
func ToAPIWorkspaceDirectory(record records.WorkspaceDirectoryProvider) model.WorkspaceDirectoryProvider {
	return model.WorkspaceDirectoryProvider{
		PK:                                 record.PK,
		Name:                               record.Name,
		PropertyMappings:                   record.PropertyMappings,
		PropertyMappingsGroup:              record.PropertyMappingsGroup,
		Component:                          "provider-workspace-directory-form",
		AssignedBackchannelApplicationSlug: record.Backchannel.Application.Slug,
		AssignedBackchannelApplicationName: record.Backchannel.Application.Name,
		VerboseName:                        "Workspace Directory Provider",
		VerboseNamePlural:                  "Workspace Directory Providers",
		MetaModelName:                      "providers_workspace_directory.workspacedirectoryprovider",
		DelegatedSubject:                   record.DelegatedSubject,
		Credentials:                        json.RawMessage(record.Credentials.Reveal()),
		Scopes:                             record.Scopes,
		ExcludeUsersServiceAccount:         record.ExcludeUsersServiceAccount,
		FilterGroup:                        record.FilterGroup,
		UserDeleteAction:                   model.OutgoingSyncDeleteAction(record.UserDeleteAction),
		GroupDeleteAction:                  model.OutgoingSyncDeleteAction(record.GroupDeleteAction),
		DefaultGroupEmailDomain:            record.DefaultGroupEmailDomain,
	}
}
