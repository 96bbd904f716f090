package server

import (
	"context"

	"example.com/providerd/gen/api"
	"example.com/providerd/gen/model"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
	"example.com/providerd/store/records"
	"example.com/providerd/store/seal"
)

// ProvidersOauth2Create stores an OAuth2 provider or, if it is only validated, returns it as it would be stored.
func (s *Server) ProvidersOauth2Create(
	ctx context.Context, request api.ProvidersOauth2CreateRequestObject,
) (api.ProvidersOauth2CreateResponseObject, error) {
	ctx, cancel := exchangeOf(ctx).limitStorage(ctx)
	defer cancel()
	requested := createRequest(ctx, request.Body.Name, request.Params.IdempotencyKey)
	settings, generated := contract.FromAPIOAuth2(*request.Body)
	requested.Generated = generated
	record, replayed, err := s.config.Store.Providers.CreateOAuth2(ctx, requested, settings)
	if err != nil {
		return nil, explainReuse(ctx, err)
	}
	if requested.ValidateOnly {
		return respond(ctx, toValidatedOAuth2(record), replayed, advice.OAuth2(settings)), nil
	}
	return respond(ctx, contract.ToAPIOAuth2(record), replayed, nil), nil
}

// toValidatedOAuth2 returns the response to a validation, without a secret: the record that the idempotency key already
// created, or the one that a create would store, without what it would generate.
func toValidatedOAuth2(record records.OAuth2Provider) model.OAuth2Provider {
	if record.PK == 0 && record.Generated&records.GeneratedClientID != 0 {
		record.ClientID = ""
	}
	record.ClientSecret = seal.Secret{}
	return contract.ToAPIOAuth2(record)
}
