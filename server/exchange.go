package server

import (
	"context"
	"io"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"example.com/providerd/store"
)

// exchange is one request and its response.
type exchange struct {
	requestID string
	started   time.Time
	// took is the time from the request header to the end of the response; zero until then.
	took time.Duration
	// waited is how long the database took to find the token.
	waited time.Duration
	// operation is an operationId of the contract; "" for other paths.
	operation string
	// token is the access token of the caller; the zero value until it is found.
	token store.Token
	// remoteAddress is the IP address of the client.
	remoteAddress string
	// isForwardedMalformed is true if a trusted proxy sent an address that cannot be read.
	isForwardedMalformed bool
	// body is the unread part of the request body.
	body io.Reader
	// validateOnly is true for a validation, which stores nothing.
	validateOnly bool
	// replayed is true if the response is a record that an earlier request created.
	replayed bool
	// refused is why the request was refused; nil if it was not.
	refused *refusal
	// writeError is why the response could not be sent.
	writeError error
	// traceID is "" if the request is not part of a trace.
	traceID string
	// spans is nil if the request is not recorded.
	spans *spans
}

type exchangeKey struct{}

// exchangeOf returns the exchange that a context belongs to. It panics if there is none.
func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// spans holds the data for the spans of one request, which are created after the response. A nil pointer records
// nothing.
type spans struct {
	tracer trace.Tracer
	root   trace.Span
	// fixed holds the attributes that all requests of the operation have in common.
	fixed []attribute.KeyValue
	// validation is when the body was validated; zero if it was not.
	validation interval
	// timing is filled in by the store.
	timing store.Timing
}

type interval struct{ begun, ended time.Time }

// validate records the start of validation, and its end when the caller calls end.
func (s *spans) validate() (end func()) {
	if s == nil {
		return func() {}
	}
	s.validation.begun = time.Now()
	return func() { s.validation.ended = time.Now() }
}

// createTiming returns the timing for the store to fill in; nil if nothing is recorded.
func (s *spans) createTiming() *store.Timing {
	if s == nil {
		return nil
	}
	return &s.timing
}
