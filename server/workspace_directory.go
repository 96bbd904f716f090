package server

import (
	"context"

	"example.com/providerd/gen/api"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// ProvidersWorkspaceDirectoryCreate stores a workspace directory-sync provider or, if it is only validated,
// returns it as it would be stored.
func (s *Server) ProvidersWorkspaceDirectoryCreate(
	ctx context.Context, request api.ProvidersWorkspaceDirectoryCreateRequestObject,
) (api.ProvidersWorkspaceDirectoryCreateResponseObject, error) {
	ctx, cancel := exchangeOf(ctx).limitStorage(ctx)
	defer cancel()
	requested := createRequest(ctx, request.Body.Name, request.Params.IdempotencyKey)
	settings := contract.FromAPIWorkspaceDirectory(*request.Body)
	record, replayed, err := s.config.Store.CreateWorkspaceDirectoryProvider(ctx, requested, settings)
	if err != nil {
		return nil, s.explainReuse(ctx, err)
	}
	if requested.ValidateOnly {
		// The response to a validation has no secret.
		record.Credentials = store.NewSecret("{}")
		return api.ProvidersWorkspaceDirectoryCreate200JSONResponse{
			Body: contract.ToAPIWorkspaceDirectory(record),
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
		Body: contract.ToAPIWorkspaceDirectory(record),
		Headers: api.ProvidersWorkspaceDirectoryCreate201ResponseHeaders{
			CacheControl:        noStore,
			IdempotencyReplayed: replayedHeader(replayed),
			PreferenceApplied:   request.Params.Prefer,
			XRequestID:          exchangeOf(ctx).requestID,
		},
	}, nil
}
