package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

const (
	// collectorTimeout is how long shutdown waits for the collector to accept the last spans.
	collectorTimeout = 3 * time.Second
	// maxCollectorResponse is how many bytes of a response of the collector are read.
	maxCollectorResponse = 64 << 10
	// maxSpans bounds the queue of spans, and the spans of one export.
	maxSpans = 1 << 16
)

// The variables that name the collector. The first is for traces only, and takes precedence.
const (
	tracesEndpoint  = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	generalEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
)

// startTraces exports traces until stop is called, if the environment names a collector. If the collector cannot be
// used, it notifies the operator and returns a nil provider: the server must work without it.
func startTraces(
	ctx context.Context, log *serveLog, version string,
) (provider *sdktrace.TracerProvider, stop func()) {
	endpoint, err := TraceEndpoint()
	if err == nil && endpoint == nil {
		return nil, func() {}
	}
	if err == nil {
		provider, err = newTracerProvider(ctx, endpoint, version, log.Logger)
	}
	if err != nil {
		log.messages.Warn("traces are not exported: %v", err)
		return nil, func() {}
	}
	log.messages.Note("exporting traces to %s", originOf(endpoint))
	return provider, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), collectorTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.Warn("cannot export last traces", slog.String("error", err.Error()))
		}
	}
}

// newTracerProvider returns a new provider that exports to endpoint. The SDK and its exporter also read the
// environment.
func newTracerProvider(
	ctx context.Context, endpoint *url.URL, version string, logger *slog.Logger,
) (*sdktrace.TracerProvider, error) {
	// The SDK reports errors only to these process-wide handlers, which write to standard error by default.
	otel.SetLogger(logr.FromSlogHandler(messagesOnly{logger.Handler()}))
	otel.SetErrorHandler(logSDKErrors(endpoint, logger))
	// Without an explicit URL, OTEL_EXPORTER_OTLP_INSECURE, which is for gRPC, would send the collector's key unencrypted.
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint.String()),
		otlptracehttp.WithProxy(proxyExceptRedirects),
		otlptracehttp.WithMaxResponseSize(maxCollectorResponse))
	if err != nil {
		return nil, fmt.Errorf("start exporter: %w", err)
	}
	// The provider reads the variable, too, and reports entries that are not valid.
	program, _ := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		semconv.ServiceName("providerd"), semconv.ServiceVersion(version),
		semconv.ServiceInstanceID(uuid.NewString()),
	), resource.WithFromEnv())
	// A panic value may contain a part of a request body.
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter, clampOptions), sdktrace.WithResource(program),
		sdktrace.WithoutPanicRecording()), nil
}

// clampOptions corrects sizes that make the SDK panic, and a delay that makes it spin.
func clampOptions(o *sdktrace.BatchSpanProcessorOptions) {
	o.MaxQueueSize = min(max(o.MaxQueueSize, 1), maxSpans)
	o.MaxExportBatchSize = min(max(o.MaxExportBatchSize, 1), maxSpans)
	o.BatchTimeout = max(o.BatchTimeout, time.Millisecond)
}

// proxyExceptRedirects is http.ProxyFromEnvironment, but returns errRedirected for a redirect: following it would send
// the collector's key, which may be in any header, to another host. It is called before each connection, so a redirect
// within one host is still followed over HTTP/2.
func proxyExceptRedirects(r *http.Request) (*url.URL, error) {
	if r.Response != nil {
		return nil, errRedirected
	}
	return http.ProxyFromEnvironment(r) //nolint:wrapcheck // The transport adds the context.
}

// TraceEndpoint returns the collector's endpoint for traces, or nil if they are off. An error does not contain the URL,
// which may hold a secret.
func TraceEndpoint() (*url.URL, error) {
	if strings.EqualFold(variable("OTEL_SDK_DISABLED"), "true") ||
		strings.EqualFold(variable("OTEL_TRACES_EXPORTER"), "none") {
		return nil, nil
	}
	if variable(tracesEndpoint) != "" {
		return parseEndpoint(tracesEndpoint)
	}
	if variable(generalEndpoint) == "" {
		return nil, nil
	}
	endpoint, err := parseEndpoint(generalEndpoint)
	if err != nil {
		return nil, err
	}
	return endpoint.JoinPath("v1", "traces"), nil
}

// parseEndpoint parses the URL in a variable. It refuses a user and a query, which the exporter would drop silently.
func parseEndpoint(name string) (*url.URL, error) {
	endpoint, err := url.Parse(variable(name))
	if err != nil || endpoint.Hostname() == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return nil, fmt.Errorf("%s is not an HTTP URL; set it to one such as http://127.0.0.1:4318", name)
	}
	if endpoint.User != nil || endpoint.RawQuery != "" || endpoint.ForceQuery || endpoint.Fragment != "" {
		return nil, fmt.Errorf("%s has a user, a query or a fragment, which would not be sent; remove it, and pass "+
			"credentials in OTEL_EXPORTER_OTLP_HEADERS", name)
	}
	return endpoint, nil
}

// variable returns an environment variable as the exporter reads it.
func variable(name string) string { return strings.TrimSpace(os.Getenv(name)) }
