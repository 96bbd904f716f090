package server_test

import (
	"crypto/tls"
	"net/http"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"example.com/providerd/server"
)

// The span of a request has its scheme.
func TestTracesTellTheScheme(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	traces := server.NewTraces(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))
	target := newTarget(t, func(config *server.Config) { config.Traces = traces })
	for scheme, security := range map[string]*tls.ConnectionState{"http": nil, "https": {}} {
		exporter.Reset()
		target.post(oauth2Path, "{}", func(request *http.Request) { request.TLS = security })
		spans := exporter.GetSpans()
		if len(spans) != 2 {
			t.Fatalf("there are %d spans", len(spans))
		}
		attributes := attribute.NewSet(spans[1].Attributes...)
		if told, _ := attributes.Value("url.scheme"); told.AsString() != scheme {
			t.Errorf("the scheme is %q, want %q", told.AsString(), scheme)
		}
	}
}
