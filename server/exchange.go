package server

import (
	"context"
	"io"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"example.com/providerd/store"
)

// exchange is what is known of one request while it is answered.
type exchange struct {
	requestID string
	started   time.Time
	// took is how long it took, once it is answered.
	took time.Duration
	// waited is how long it has waited for the storage to find its token.
	waited time.Duration
	// operation is the operationId of what the request is for; "" if it is not for an operation.
	operation string
	// token is what the caller showed; the zero value before it is known.
	token store.Token
	// remoteAddress is the IP address that the request came from.
	remoteAddress string
	// body is what has not been read of the request's body.
	body io.Reader
	// validateOnly is true if the caller wants nothing to be stored.
	validateOnly bool
	// bodyDigest tells the body apart from others with the same idempotency key; nil without a key.
	bodyDigest []byte
	// replayed is true if the response is a record that was created before.
	replayed bool
	// refused is nil while nothing went wrong.
	refused *refusal
	// writeError is why the answer could not be sent.
	writeError error
	// traceID is the trace that the request is a part of; "" if it is not part of one.
	traceID string
	// spans are nil if none are made.
	spans *spans
}

type exchangeKey struct{}

// exchangeOf returns the exchange that a context belongs to. It panics if there is none.
func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// spans are those of one request, all made when it has been answered. A nil pointer makes none.
type spans struct {
	tracer trace.Tracer
	root   trace.Span
	// fixed are the attributes that all requests for the operation have.
	fixed []attribute.KeyValue
	// validation is when the body was validated; zero if it was not.
	validation interval
	// timing is what the store says of the create.
	timing store.Timing
}

type interval struct{ begun, ended time.Time }

// validate notes that the body is validated from now until end is called.
func (s *spans) validate() (end func()) {
	if s == nil {
		return func() {}
	}
	s.validation.begun = time.Now()
	return func() { s.validation.ended = time.Now() }
}

// createTiming is what the store fills in; nil if no spans are made.
func (s *spans) createTiming() *store.Timing {
	if s == nil {
		return nil
	}
	return &s.timing
}
