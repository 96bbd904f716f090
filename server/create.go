package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/providerd/gen/model"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// noStore is the Cache-Control of all responses except files: records contain secrets, and the others change.
const noStore = "no-store"

// storageTimeout is how long a request may wait for the database, in total for the token and the create. The time that
// the caller takes to send the body does not count.
const storageTimeout = 5 * time.Second

// limitStorage returns a context that ends when the database has taken too long to handle the request. It leaves a
// sixth of the write timeout for reporting that.
func (e *exchange) limitStorage(ctx context.Context) (context.Context, context.CancelFunc) {
	left := storageTimeout - e.waited
	if server, ok := ctx.Value(http.ServerContextKey).(*http.Server); ok && server.WriteTimeout > 0 {
		left = min(left, server.WriteTimeout-server.WriteTimeout/6-time.Since(e.started))
	}
	return context.WithTimeout(ctx, left)
}

// createRequest describes who requests a provider, and how.
func createRequest(ctx context.Context, name string, idempotencyKey *string) store.CreateRequest {
	current := exchangeOf(ctx)
	return store.CreateRequest{
		Name:           name,
		CreatedBy:      current.token.Name,
		RequestID:      current.requestID,
		IdempotencyKey: idempotencyKey,
		RemoteAddress:  current.remoteAddress,
		ValidateOnly:   current.validateOnly,
		Timing:         current.spans.createTiming(),
		Reserve:        current.reserved.holdRecord,
	}
}

// linkOf returns the value of the Link header of a validation, with its advice; nil if there is none.
func linkOf(given []advice.Advice) *string {
	link := advice.Link(given, advicePath)
	if link == "" {
		return nil
	}
	return &link
}

// replayedHeader returns the value of Idempotency-Replayed; nil if the record is new.
func replayedHeader(replayed bool) *string {
	if !replayed {
		return nil
	}
	return new("true")
}

// explainReuse replaces store.ErrKeyReused with a refusal that lists the fields that differ, in the order of the
// contract, and returns other errors unchanged.
func (s *Server) explainReuse(ctx context.Context, err error) error {
	reused, ok := errors.AsType[*store.KeyReusedError](err)
	if !ok {
		return err
	}
	op, _ := s.config.Contract.Operation(exchangeOf(ctx).operation)
	refused := &refusal{slug: idempotencyKeyReused, pk: &reused.PK}
	var names []string
	for _, name := range op.FieldNames() {
		if !slices.Contains(reused.Fields, name) {
			continue
		}
		names = append(names, name)
		refused.violations = append(refused.violations, model.Violation{
			Pointer: string(jsontext.Pointer("").AppendToken(name)), Code: contract.CodeDiffers,
			Detail: fmt.Sprintf("`%s` has a different value in provider %d.", name, reused.PK),
		})
	}
	refused.detail = fmt.Sprintf("This Idempotency-Key already created provider %d, which has other values for %s. "+
		"Send the values of that provider, or use a new key.", reused.PK, strings.Join(names, ", "))
	return refused
}
