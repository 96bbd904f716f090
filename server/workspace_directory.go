package server

import (
	"context"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"example.com/providerd/gen/api"
	"example.com/providerd/server/advice"
	"example.com/providerd/store"
)

// ProvidersWorkspaceDirectoryCreate stores a workspace directory-sync provider or, if it is only validated,
// returns it as it would be stored.
func (s *Server) ProvidersWorkspaceDirectoryCreate(
	ctx context.Context, request api.ProvidersWorkspaceDirectoryCreateRequestObject,
) (api.ProvidersWorkspaceDirectoryCreateResponseObject, error) {
	requested := createRequest(ctx, request.Body.Name, request.Params.IdempotencyKey)
	settings := FromAPIWorkspaceDirectory(*request.Body)
	record, replayed, err := s.store.CreateWorkspaceDirectoryProvider(ctx, requested, settings)
	if err != nil {
		return nil, s.explainReuse(ctx, err)
	}
	if requested.ValidateOnly {
		// The response to a validation has no secret.
		record.Credentials = store.NewSecret("{}")
		return api.ProvidersWorkspaceDirectoryCreate200JSONResponse{
			Body: ToAPIWorkspaceDirectory(record),
			Headers: api.ProvidersWorkspaceDirectoryCreate200ResponseHeaders{
				CacheControl:        noStore,
				IdempotencyReplayed: replayedHeader(replayed),
				Link:                linkOf(advice.WorkspaceDirectory(settings)),
				PreferenceApplied:   request.Params.Prefer,
				XRequestID:          exchangeOf(ctx).requestID,
			},
		}, nil
	}
	exchangeOf(ctx).replayed = replayed
	return api.ProvidersWorkspaceDirectoryCreate201JSONResponse{
		Body: ToAPIWorkspaceDirectory(record),
		Headers: api.ProvidersWorkspaceDirectoryCreate201ResponseHeaders{
			CacheControl:        noStore,
			IdempotencyReplayed: replayedHeader(replayed),
			PreferenceApplied:   request.Params.Prefer,
			XRequestID:          exchangeOf(ctx).requestID,
		},
	}, nil
}

// FromAPIWorkspaceDirectory converts a valid request to settings. Fields that are absent or null get their defaults.
func FromAPIWorkspaceDirectory(request api.WorkspaceDirectoryProviderRequest) store.WorkspaceDirectorySettings {
	return store.WorkspaceDirectorySettings{
		PropertyMappings:           valueOr(request.PropertyMappings, []uuid.UUID{}),
		PropertyMappingsGroup:      valueOr(request.PropertyMappingsGroup, []uuid.UUID{}),
		DelegatedSubject:           request.DelegatedSubject,
		Credentials:                store.NewSecret(compactJSON(request.Credentials)),
		Scopes:                     valueOr(request.Scopes, ""),
		ExcludeUsersServiceAccount: valueOr(request.ExcludeUsersServiceAccount, false),
		FilterGroup:                request.FilterGroup,
		UserDeleteAction:           string(valueOr(request.UserDeleteAction, api.OutgoingSyncDeleteActionDoNothing)),
		GroupDeleteAction:          string(valueOr(request.GroupDeleteAction, api.OutgoingSyncDeleteActionDoNothing)),
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
func ToAPIWorkspaceDirectory(record store.WorkspaceDirectoryProvider) api.WorkspaceDirectoryProvider {
	return api.WorkspaceDirectoryProvider{
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
		UserDeleteAction:                   api.OutgoingSyncDeleteAction(record.UserDeleteAction),
		GroupDeleteAction:                  api.OutgoingSyncDeleteAction(record.GroupDeleteAction),
		DefaultGroupEmailDomain:            record.DefaultGroupEmailDomain,
	}
}
