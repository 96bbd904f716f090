package server

import (
	"context"

	"example.com/providerd/gen/api"
	"example.com/providerd/server/advice"
)

// verdict answers a request that is only validated, and would be answered with a record otherwise: with the one that
// the idempotency key made before, or with a new one, where madeBefore is 0.
func verdict(
	ctx context.Context, madeBefore int32, advice []advice.Advice, preference *api.Prefer,
) api.VerdictJSONResponse {
	body := api.Verdict{Outcome: api.VerdictOutcomeWouldCreate, Advice: make([]api.Advice, len(advice))}
	for i, one := range advice {
		body.Advice[i] = api.Advice{Code: one.Code, Pointer: one.Pointer, Detail: one.Detail, Section: one.Section}
	}
	if madeBefore != 0 {
		body.Outcome, body.PK = api.VerdictOutcomeAlreadyCreated, &madeBefore
	}
	return api.VerdictJSONResponse{
		Body: body,
		Headers: api.VerdictResponseHeaders{
			CacheControl: noStore, PreferenceApplied: preference, XRequestID: exchangeOf(ctx).requestID,
		},
	}
}

// noStore is the value of Cache-Control in the answer of a record, which has secrets.
const noStore = "no-store"

// valueOr is what was sent, or a default.
func valueOr[T any](sent *T, otherwise T) T {
	if sent != nil {
		return *sent
	}
	return otherwise
}
