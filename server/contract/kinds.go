package contract

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"example.com/providerd/gen/model"
	"example.com/providerd/store/records"
	"example.com/providerd/store/seal"
)

// The lengths of generated credentials.
const (
	clientIDLength     = 40
	clientSecretLength = 128
)

// FromAPIOAuth2 converts a valid request to settings, with defaults, and returns which values it has chosen.
func FromAPIOAuth2(request model.OAuth2ProviderRequest) (settings records.OAuth2Settings, generated records.Generated) {
	byDefault := records.DefaultOAuth2()
	settings = records.OAuth2Settings{
		AuthenticationFlow:     request.AuthenticationFlow,
		AuthorizationFlow:      request.AuthorizationFlow,
		PropertyMappings:       valueOr(request.PropertyMappings, []uuid.UUID{}),
		ClientType:             textOr(request.ClientType, byDefault.ClientType),
		ClientID:               valueOr(request.ClientID, ""),
		ClientSecret:           seal.NewSecret(valueOr(request.ClientSecret, "")),
		AccessCodeValidity:     textOr(request.AccessCodeValidity, byDefault.AccessCodeValidity),
		AccessTokenValidity:    textOr(request.AccessTokenValidity, byDefault.AccessTokenValidity),
		RefreshTokenValidity:   textOr(request.RefreshTokenValidity, byDefault.RefreshTokenValidity),
		IncludeClaimsInIDToken: valueOr(request.IncludeClaimsInIDToken, byDefault.IncludeClaimsInIDToken),
		SigningKey:             request.SigningKey,
		RedirectURIs:           textOr(request.RedirectUris, byDefault.RedirectURIs),
		SubMode:                textOr(request.SubMode, byDefault.SubMode),
		IssuerMode:             textOr(request.IssuerMode, byDefault.IssuerMode),
		JWKSSources:            valueOr(request.JWKSSources, []uuid.UUID{}),
	}
	if request.ClientID == nil {
		generated |= records.GeneratedClientID
		settings.ClientID = seal.RandomAlphanumeric(clientIDLength)
	}
	if request.ClientSecret == nil {
		generated |= records.GeneratedSecret
		// Only a confidential client can keep a secret.
		if settings.ClientType != string(model.ClientTypeEnumPublic) {
			settings.ClientSecret = seal.NewSecret(seal.RandomAlphanumeric(clientSecretLength))
		}
	}
	return settings, generated
}

// ToAPIOAuth2 converts a record to its form in the API.
func ToAPIOAuth2(record records.OAuth2Provider) model.OAuth2Provider {
	return model.OAuth2Provider{
		PK:                                 record.PK,
		Name:                               record.Name,
		AuthenticationFlow:                 record.AuthenticationFlow,
		AuthorizationFlow:                  record.AuthorizationFlow,
		PropertyMappings:                   record.PropertyMappings,
		Component:                          "provider-oauth2-form",
		AssignedApplicationSlug:            record.Application.Slug,
		AssignedApplicationName:            record.Application.Name,
		AssignedBackchannelApplicationSlug: record.Backchannel.Application.Slug,
		AssignedBackchannelApplicationName: record.Backchannel.Application.Name,
		VerboseName:                        "OAuth2/OpenID Provider",
		VerboseNamePlural:                  "OAuth2/OpenID Providers",
		MetaModelName:                      "providers_oauth2.oauth2provider",
		ClientType:                         model.ClientTypeEnum(record.ClientType),
		ClientID:                           record.ClientID,
		ClientSecret:                       record.ClientSecret.Reveal(),
		AccessCodeValidity:                 record.AccessCodeValidity,
		AccessTokenValidity:                record.AccessTokenValidity,
		RefreshTokenValidity:               record.RefreshTokenValidity,
		IncludeClaimsInIDToken:             record.IncludeClaimsInIDToken,
		SigningKey:                         record.SigningKey,
		RedirectUris:                       record.RedirectURIs,
		SubMode:                            model.SubModeEnum(record.SubMode),
		IssuerMode:                         model.IssuerModeEnum(record.IssuerMode),
		JWKSSources:                        record.JWKSSources,
	}
}

func valueOr[T any](sent *T, byDefault T) T {
	if sent != nil {
		return *sent
	}
	return byDefault
}

// textOr is valueOr for a string or an enumeration.
func textOr[T ~string](sent *T, byDefault string) string { return string(valueOr(sent, T(byDefault))) }

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

// compactJSON removes white space and unnecessary escapes from valid JSON: a replay may send that form, by which memory
// for its response is estimated, and the store relies on the equal length of equal credentials.
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
