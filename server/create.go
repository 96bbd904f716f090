package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"example.com/providerd/gen/api"
	"example.com/providerd/gen/model"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
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
		return respond(ctx, toValidatedOAuth2(record), replayed, advice.OAuth2(settings, generated)), nil
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

// ProvidersWorkspaceDirectoryCreate stores a workspace directory-sync provider, or validates it, like the other.
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

// storageTimeout limits the wait for the database, in total for the token and the create, but not for the body.
const storageTimeout = 5 * time.Second

// limitStorage returns a context that ends early enough to report, in a sixth of the write timeout, a slow database.
func (e *exchange) limitStorage(ctx context.Context) (context.Context, context.CancelFunc) {
	left := storageTimeout - e.waited
	if server, ok := ctx.Value(http.ServerContextKey).(*http.Server); ok && server.WriteTimeout > 0 {
		left = min(left, server.WriteTimeout-server.WriteTimeout/6-time.Since(e.started))
	}
	return context.WithTimeout(ctx, left)
}

func createRequest(ctx context.Context, name string, idempotencyKey *string) store.CreateRequest {
	current := exchangeOf(ctx)
	return store.CreateRequest{
		Name: name, CreatedBy: current.token.Name, RequestID: current.requestID, IdempotencyKey: idempotencyKey,
		RemoteAddress: current.remoteAddress, ValidateOnly: current.validateOnly,
		Timing: current.spans.createTiming(), Reserve: current.reserved.holdRecord,
	}
}

// recordResponse is the response of either operation: a record that was stored, or would be.
type recordResponse[Record any] struct {
	exchange *exchange
	record   Record
	replayed bool
	// given is the advice in the Link header.
	given []advice.Advice
}

// respond returns the response with a record. Only creates count as replayed.
func respond[Record any](
	ctx context.Context, record Record, replayed bool, given []advice.Advice,
) *recordResponse[Record] {
	current := exchangeOf(ctx)
	current.replayed = replayed && !current.validateOnly
	return &recordResponse[Record]{current, record, replayed, given}
}

// VisitProvidersOauth2CreateResponse implements api.ProvidersOauth2CreateResponseObject.
func (r *recordResponse[Record]) VisitProvidersOauth2CreateResponse(w http.ResponseWriter) error {
	return r.write(w)
}

// VisitProvidersWorkspaceDirectoryCreateResponse implements api.ProvidersWorkspaceDirectoryCreateResponseObject.
func (r *recordResponse[Record]) VisitProvidersWorkspaceDirectoryCreateResponse(w http.ResponseWriter) error {
	return r.write(w)
}

func (r *recordResponse[Record]) write(w http.ResponseWriter) error {
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(&r.record); err != nil {
		return fmt.Errorf("render provider: %w", err)
	}
	header := w.Header()
	header.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	if r.replayed {
		header.Set("Idempotency-Replayed", "true")
	}
	if link := advice.Link(r.given, advicePath); link != "" {
		header.Set("Link", link)
	}
	status := http.StatusCreated
	if r.exchange.validateOnly {
		status = http.StatusOK
	}
	w.WriteHeader(status)
	_, err := w.Write(text.Bytes())
	return err //nolint:wrapcheck // handleError looks at its type.
}

// explainReuse replaces a KeyReusedError with a refusal that lists the differing fields in the contract's order.
func explainReuse(ctx context.Context, err error) error {
	reused, ok := errors.AsType[*store.KeyReusedError](err)
	if !ok {
		return err
	}
	refused := &refusal{slug: idempotencyKeyReused, pk: &reused.PK}
	var names []string
	for _, name := range exchangeOf(ctx).operation.FieldNames() {
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
