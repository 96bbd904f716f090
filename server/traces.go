package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// traceparentHeader is defined by W3C Trace Context. Its companion tracestate, free text of the caller, is not read.
const traceparentHeader = "traceparent"

// The attributes for which there is no semantic convention.
const (
	requestIDKey    = attribute.Key("providerd.request_id")
	problemKey      = attribute.Key("providerd.problem")
	replayedKey     = attribute.Key("providerd.replayed")
	validateOnlyKey = attribute.Key("providerd.validate_only")
	batchSizeKey    = attribute.Key("providerd.batch_size")
)

const maxAttributes = 10

// Traces creates spans for requests of the operations by OpenTelemetry's conventions for HTTP servers. Attributes have
// nothing that a caller sent, except a well-formed request id; otelecho adds the Host and the User-Agent.
type Traces struct{ tracer trace.Tracer }

// NewTraces returns new Traces that use the tracer of a provider.
func NewTraces(provider trace.TracerProvider) *Traces {
	return &Traces{provider.Tracer("example.com/providerd/server", trace.WithSchemaURL(semconv.SchemaURL))}
}

// spans holds the data for the spans of a request, created after the response. A nil pointer records nothing.
type spans struct {
	tracer trace.Tracer
	root   trace.Span
	// fixed holds the attributes that all requests of the operation have in common.
	fixed []attribute.KeyValue
	// validation is when the body was validated; zero if it was not.
	validation interval
	timing     store.Timing
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

// begin starts the span of each request of an operation, within the trace of the caller. It does nothing if t is nil.
func (t *Traces) begin(op *contract.Operation) echo.HandlerFunc {
	if t == nil {
		return func(echo.Context) error { return nil }
	}
	name := op.Method + " " + op.Path
	// The routes have no parameters, so the path identifies the operation.
	fixedOver := func(scheme string) []attribute.KeyValue {
		return []attribute.KeyValue{
			semconv.HTTPRequestMethodKey.String(op.Method), semconv.HTTPRoute(op.Path), semconv.URLPath(op.Path),
			semconv.URLScheme(scheme),
		}
	}
	plain, secure := fixedOver("http"), fixedOver("https")
	asServer := trace.WithSpanKind(trace.SpanKindServer)
	return func(c echo.Context) error {
		current := exchangeOf(c.Request().Context())
		parent := parentContext(c.Request())
		_, root := t.tracer.Start(parent, name, asServer, trace.WithTimestamp(current.started))
		if root.IsRecording() {
			fixed := plain
			if c.Request().TLS != nil {
				fixed = secure
			}
			current.spans = &spans{tracer: t.tracer, root: root, fixed: fixed}
		}
		if root.IsRecording() || trace.SpanContextFromContext(parent).IsValid() {
			current.traceID = root.SpanContext().TraceID().String()
		}
		return nil
	}
}

// parentContext returns the context of a request with the caller's span. A malformed or repeated header is ignored.
func parentContext(r *http.Request) context.Context {
	values := r.Header.Values(traceparentHeader)
	if len(values) != 1 {
		return r.Context()
	}
	return propagation.TraceContext{}.Extract(r.Context(), propagation.MapCarrier{traceparentHeader: values[0]})
}

// end ends the span of a finished exchange, and creates the spans within it.
func (s *spans) end(ctx context.Context, finished *exchange, status int) {
	if s == nil {
		return
	}
	ended := finished.started.Add(finished.took)
	s.addParts(trace.ContextWithSpan(ctx, s.root), ended)
	attributes := append(make([]attribute.KeyValue, 0, maxAttributes), s.fixed...)
	attributes = append(attributes,
		semconv.HTTPResponseStatusCode(status), requestIDKey.String(finished.requestID))
	if finished.validateOnly {
		attributes = append(attributes, validateOnlyKey.Bool(true))
	}
	if finished.replayed {
		attributes = append(attributes, replayedKey.Bool(true))
	}
	if finished.refused != nil {
		attributes = append(attributes, problemKey.String(string(finished.refused.slug)))
	}
	if status >= http.StatusInternalServerError {
		attributes = append(attributes, semconv.ErrorTypeKey.String(strconv.Itoa(status)))
		s.root.SetStatus(codes.Error, "")
	}
	s.root.SetAttributes(attributes...)
	s.root.End(trace.WithTimestamp(ended))
}

// addParts adds the spans of the steps that the request reached: validation, queue and transaction.
func (s *spans) addParts(ctx context.Context, ended time.Time) {
	if s.validation.begun.IsZero() {
		return
	}
	s.add(ctx, "validate", s.validation, codes.Unset)
	if s.timing.Queued.IsZero() {
		return
	}
	if s.timing.Begun.IsZero() {
		s.add(ctx, "queue", interval{s.timing.Queued, ended}, codes.Unset)
		return
	}
	s.add(ctx, "queue", interval{s.timing.Queued, s.timing.Begun}, codes.Unset)
	outcome := codes.Unset
	if s.timing.HasFailed {
		outcome = codes.Error
	}
	s.add(ctx, "commit", interval{s.timing.Begun, s.timing.Ended}, outcome, batchSizeKey.Int(s.timing.BatchSize))
}

func (s *spans) add(
	ctx context.Context, name string, lasted interval, outcome codes.Code, attributes ...attribute.KeyValue,
) {
	_, span := s.tracer.Start(ctx, name, trace.WithTimestamp(lasted.begun))
	span.SetStatus(outcome, "")
	span.SetAttributes(attributes...)
	span.End(trace.WithTimestamp(lasted.ended))
}
