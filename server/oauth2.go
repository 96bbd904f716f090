package server

import (
	"context"

	"github.com/google/uuid"

	"example.com/providerd/gen/api"
	"example.com/providerd/server/advice"
	"example.com/providerd/store"
)

// The lengths of generated credentials.
const (
	clientIDLength     = 40
	clientSecretLength = 128
)

// ProvidersOauth2Create stores an OAuth2 provider or, if it is only validated, returns it as it would be stored.
func (s *Server) ProvidersOauth2Create(
	ctx context.Context, request api.ProvidersOauth2CreateRequestObject,
) (api.ProvidersOauth2CreateResponseObject, error) {
	requested := createRequest(ctx, request.Body.Name, request.Params.IdempotencyKey)
	settings, generated := FromAPIOAuth2(*request.Body)
	requested.Generated = generated
	record, replayed, err := s.store.CreateOAuth2Provider(ctx, requested, settings)
	if err != nil {
		return nil, s.explainReuse(ctx, err)
	}
	if requested.ValidateOnly {
		return api.ProvidersOauth2Create200JSONResponse{
			Body: toValidatedOAuth2(record),
			Headers: api.ProvidersOauth2Create200ResponseHeaders{
				CacheControl:        noStore,
				IdempotencyReplayed: replayedHeader(replayed),
				Link:                linkOf(advice.OAuth2(settings)),
				PreferenceApplied:   request.Params.Prefer,
				XRequestID:          exchangeOf(ctx).requestID,
			},
		}, nil
	}
	exchangeOf(ctx).replayed = replayed
	return api.ProvidersOauth2Create201JSONResponse{
		Body: ToAPIOAuth2(record),
		Headers: api.ProvidersOauth2Create201ResponseHeaders{
			CacheControl:        noStore,
			IdempotencyReplayed: replayedHeader(replayed),
			PreferenceApplied:   request.Params.Prefer,
			XRequestID:          exchangeOf(ctx).requestID,
		},
	}, nil
}

// toValidatedOAuth2 returns the response to a validation, without a secret: the record that the idempotency key already
// created, or the one that a create would store, without what it would generate.
func toValidatedOAuth2(record store.OAuth2Provider) api.OAuth2Provider {
	if record.PK == 0 && record.Generated&store.GeneratedClientID != 0 {
		record.ClientID = ""
	}
	record.ClientSecret = store.Secret{}
	return ToAPIOAuth2(record)
}

// FromAPIOAuth2 converts a valid request to settings, and returns which of them it has chosen. Fields that are absent
// or null get their defaults.
func FromAPIOAuth2(request api.OAuth2ProviderRequest) (settings store.OAuth2Settings, generated store.Generated) {
	clientType := valueOr(request.ClientType, api.ClientTypeEnumConfidential)
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
		SubMode:                string(valueOr(request.SubMode, api.SubModeEnumHashedUserID)),
		IssuerMode:             string(valueOr(request.IssuerMode, api.IssuerModeEnumPerProvider)),
		JWKSSources:            valueOr(request.JWKSSources, []uuid.UUID{}),
	}
	if request.ClientID == nil {
		generated |= store.GeneratedClientID
		settings.ClientID = store.RandomAlphanumeric(clientIDLength)
	}
	if request.ClientSecret == nil {
		generated |= store.GeneratedSecret
		// Only a confidential client can keep a secret.
		if clientType != api.ClientTypeEnumPublic {
			settings.ClientSecret = store.NewSecret(store.RandomAlphanumeric(clientSecretLength))
		}
	}
	return settings, generated
}

// ToAPIOAuth2 converts a record to its form in the API.
func ToAPIOAuth2(record store.OAuth2Provider) api.OAuth2Provider {
	return api.OAuth2Provider{
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
		ClientType:                         api.ClientTypeEnum(record.ClientType),
		ClientID:                           record.ClientID,
		ClientSecret:                       record.ClientSecret.Reveal(),
		AccessCodeValidity:                 record.AccessCodeValidity,
		AccessTokenValidity:                record.AccessTokenValidity,
		RefreshTokenValidity:               record.RefreshTokenValidity,
		IncludeClaimsInIDToken:             record.IncludeClaimsInIDToken,
		SigningKey:                         record.SigningKey,
		RedirectUris:                       record.RedirectURIs,
		SubMode:                            api.SubModeEnum(record.SubMode),
		IssuerMode:                         api.IssuerModeEnum(record.IssuerMode),
		JWKSSources:                        record.JWKSSources,
	}
}
