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
	settings := FromAPIOAuth2(*request.Body)
	record, replayed, err := s.store.CreateOAuth2Provider(ctx, requested, settings)
	if err != nil {
		record, err = explainReuse(ctx, s, err, func(stored store.OAuth2Provider) (any, any) {
			return ToAPIOAuth2(stored), ToAPIOAuth2(RequestedOAuth2(*request.Body, stored))
		})
		if err != nil {
			return nil, err
		}
		replayed = true
	}
	if requested.ValidateOnly {
		return api.ProvidersOauth2Create200JSONResponse{
			Body: toValidatedOAuth2(record, *request.Body, settings),
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
// created or, if prior is the zero value, the one that a create would store, without what it would generate.
func toValidatedOAuth2(
	prior store.OAuth2Provider, request api.OAuth2ProviderRequest, settings store.OAuth2Settings,
) api.OAuth2Provider {
	if prior.PK == 0 {
		prior.Name, prior.OAuth2Settings = request.Name, settings
		prior.ClientID = valueOr(request.ClientID, "")
	}
	prior.ClientSecret = store.Secret{}
	return ToAPIOAuth2(prior)
}

// RequestedOAuth2 returns the record that the request would have created instead of the stored one, for the comparison
// of a retry. Credentials that the request omits are the stored ones if those look generated.
func RequestedOAuth2(request api.OAuth2ProviderRequest, stored store.OAuth2Provider) store.OAuth2Provider {
	requested := stored
	requested.Name, requested.OAuth2Settings = request.Name, FromAPIOAuth2(request)
	if request.ClientID == nil && looksGenerated(stored.ClientID, clientIDLength) {
		requested.ClientID = stored.ClientID
	}
	isPublic := requested.ClientType == string(api.ClientTypeEnumPublic)
	if request.ClientSecret == nil && !isPublic && looksGenerated(stored.ClientSecret.Reveal(), clientSecretLength) {
		requested.ClientSecret = stored.ClientSecret
	}
	return requested
}

// looksGenerated reports whether the server may have generated a text.
func looksGenerated(text string, length int) bool {
	return len(text) == length && store.IsAlphanumeric(text)
}

// FromAPIOAuth2 converts a valid request to settings. Fields that are absent or null get their defaults.
func FromAPIOAuth2(request api.OAuth2ProviderRequest) store.OAuth2Settings {
	clientType := valueOr(request.ClientType, api.ClientTypeEnumConfidential)
	return store.OAuth2Settings{
		AuthenticationFlow:     request.AuthenticationFlow,
		AuthorizationFlow:      request.AuthorizationFlow,
		PropertyMappings:       valueOr(request.PropertyMappings, []uuid.UUID{}),
		ClientType:             string(clientType),
		ClientID:               clientID(request.ClientID),
		ClientSecret:           store.NewSecret(clientSecret(request.ClientSecret, clientType)),
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
}

// ToAPIOAuth2 converts a record to its form in the API.
func ToAPIOAuth2(record store.OAuth2Provider) api.OAuth2Provider {
	return api.OAuth2Provider{
		PK:                                 int64(record.PK),
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

func clientID(sent *string) string {
	if sent != nil {
		return *sent
	}
	return store.RandomAlphanumeric(clientIDLength)
}

// clientSecret generates a secret only for a client that can keep one.
func clientSecret(sent *string, clientType api.ClientTypeEnum) string {
	switch {
	case sent != nil:
		return *sent
	case clientType == api.ClientTypeEnumPublic:
		return ""
	default:
		return store.RandomAlphanumeric(clientSecretLength)
	}
}
