package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
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
	handler, token := bareServer(t, func(config *server.Config) { config.Traces = traces })
	for _, scheme := range []string{"http", "https"} {
		exporter.Reset()
		request := httptest.NewRequest(http.MethodPost, scheme+"://example.com"+oauth2Path, strings.NewReader("{}"))
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Content-Type", "application/json")
		handler.ServeHTTP(httptest.NewRecorder(), request)
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
