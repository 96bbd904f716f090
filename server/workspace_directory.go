package server

import (
	"context"

	"example.com/providerd/gen/api"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
	"example.com/providerd/store/seal"
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
	record, replayed, err := s.config.Store.Providers.CreateWorkspaceDirectory(ctx, requested, settings)
	if err != nil {
		return nil, explainReuse(ctx, err)
	}
	if requested.ValidateOnly {
		// The response to a validation has no secret.
		record.Credentials = seal.NewSecret("{}")
		return respond(ctx, contract.ToAPIWorkspaceDirectory(record), replayed, advice.WorkspaceDirectory(settings)), nil
	}
	return respond(ctx, contract.ToAPIWorkspaceDirectory(record), replayed, nil), nil
}
