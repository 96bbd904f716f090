package contract

import (
	"github.com/google/uuid"

	"example.com/providerd/gen/model"
	"example.com/providerd/store"
)

// The lengths of generated credentials.
const (
	clientIDLength     = 40
	clientSecretLength = 128
)

// FromAPIOAuth2 converts a valid request to settings, and returns which of them it has chosen. Fields that are absent
// or null get their defaults.
func FromAPIOAuth2(request model.OAuth2ProviderRequest) (settings store.OAuth2Settings, generated store.Generated) {
	clientType := valueOr(request.ClientType, model.ClientTypeEnumConfidential)
	settings = store.OAuth2Settings{
		AuthenticationFlow:     request.AuthenticationFlow,
		AuthorizationFlow:      request.AuthorizationFlow,
		PropertyMappings:       valueOr(request.PropertyMappings, []uuid.UUID{}),
		ClientType:             string(clientType),
		ClientID:               valueOr(request.ClientID, ""),
		ClientSecret:           store.NewSecret(valueOr(request.ClientSecret, "")),
		AccessCodeValidity:     valueOr(request.AccessCodeValidity, "minutes=1"),
		AccessTokenValidity:    valueOr(request.AccessTokenValidity, "hours=1"),
		RefreshTokenValidity:   valueOr(request.RefreshTokenValidity, "days=30"),
		IncludeClaimsInIDToken: valueOr(request.IncludeClaimsInIDToken, true),
		SigningKey:             request.SigningKey,
		RedirectURIs:           valueOr(request.RedirectUris, ""),
		SubMode:                string(valueOr(request.SubMode, model.SubModeEnumHashedUserID)),
		IssuerMode:             string(valueOr(request.IssuerMode, model.IssuerModeEnumPerProvider)),
		JWKSSources:            valueOr(request.JWKSSources, []uuid.UUID{}),
	}
	if request.ClientID == nil {
		generated |= store.GeneratedClientID
		settings.ClientID = store.RandomAlphanumeric(clientIDLength)
	}
	if request.ClientSecret == nil {
		generated |= store.GeneratedSecret
		// Only a confidential client can keep a secret.
		if clientType != model.ClientTypeEnumPublic {
			settings.ClientSecret = store.NewSecret(store.RandomAlphanumeric(clientSecretLength))
		}
	}
	return settings, generated
}

// ToAPIOAuth2 converts a record to its form in the API.
func ToAPIOAuth2(record store.OAuth2Provider) model.OAuth2Provider {
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

// valueOr returns the value that was sent, or a default.
func valueOr[T any](sent *T, byDefault T) T {
	if sent != nil {
		return *sent
	}
	return byDefault
}
