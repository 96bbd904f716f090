// Package tracing exports the traces of a server to the OpenTelemetry collector that the environment names. The spans
// themselves are made in server.
//
// Start with Start.
package tracing

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
	// collectorTimeout is how long the end of the program waits for the collector to take the last spans.
	collectorTimeout = 3 * time.Second
	// maxCollectorAnswer is how many bytes of what a collector answers are read.
	maxCollectorAnswer = 64 << 10
	// maxSpans bounds the queue of the spans that wait for the collector, and one export.
	maxSpans = 1 << 16
)

// The variables that name the collector, of which the first is for traces alone.
const (
	tracesEndpoint  = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	generalEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
)

// Start exports traces until stop is called, if the environment names a collector. If it names one that cannot be
// used, the server continues without traces: what collects traces must not keep it from serving.
func Start(
	ctx context.Context, logger *slog.Logger, say func(slog.Level, string), version string,
) (provider *sdktrace.TracerProvider, stop func()) {
	endpoint, err := Endpoint()
	if err == nil && endpoint == nil {
		return nil, func() {}
	}
	if err == nil {
		provider, err = newTracerProvider(ctx, endpoint, version, logger)
	}
	if err != nil {
		say(slog.LevelWarn, "traces are not exported: "+err.Error())
		return nil, func() {}
	}
	say(slog.LevelInfo, "exporting traces to "+originOf(endpoint))
	return provider, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), collectorTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			logger.Warn("the last traces were not exported", slog.String("error", err.Error()))
		}
	}
}

// newTracerProvider returns a provider that exports to a collector. The SDK and its exporter read the environment.
func newTracerProvider(
	ctx context.Context, endpoint *url.URL, version string, logger *slog.Logger,
) (*sdktrace.TracerProvider, error) {
	// The SDK reports errors to these two only, which belong to the process and write to standard error by default.
	otel.SetLogger(logr.FromSlogHandler(messagesOnly{logger.Handler()}))
	otel.SetErrorHandler(newSDKErrors(endpoint, logger))
	// Otherwise OTEL_EXPORTER_OTLP_INSECURE, which is for gRPC, would send the collector's key unencrypted.
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint.String()),
		otlptracehttp.WithProxy(proxyExceptRedirects),
		otlptracehttp.WithMaxResponseSize(maxCollectorAnswer))
	if err != nil {
		return nil, fmt.Errorf("start exporter: %w", err)
	}
	program, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		semconv.ServiceName("providerd"), semconv.ServiceVersion(version),
		semconv.ServiceInstanceID(uuid.NewString()),
	), resource.WithFromEnv())
	if err != nil {
		logger.Warn("OTEL_RESOURCE_ATTRIBUTES has entries that are not NAME=VALUE, which are left out")
	}
	// The value of a panic may be part of a body.
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter, withinBounds), sdktrace.WithResource(program),
		sdktrace.WithoutPanicRecording()), nil
}

// withinBounds corrects sizes with which the SDK panics, and a delay with which it never pauses.
func withinBounds(o *sdktrace.BatchSpanProcessorOptions) {
	o.MaxQueueSize = min(max(o.MaxQueueSize, 1), maxSpans)
	o.MaxExportBatchSize = min(max(o.MaxExportBatchSize, 1), maxSpans)
	o.BatchTimeout = max(o.BatchTimeout, time.Millisecond)
}

// proxyExceptRedirects is http.ProxyFromEnvironment, but fails for a redirect, with which the exporter's client would
// send the collector's key, which may be in a header of any name, to another host. It is asked before each connection:
// a redirect within one host can be followed over HTTP/2.
func proxyExceptRedirects(r *http.Request) (*url.URL, error) {
	if r.Response != nil {
		return nil, errRedirected
	}
	return http.ProxyFromEnvironment(r) //nolint:wrapcheck // The transport says what it is an error of.
}

// Endpoint returns the endpoint in the environment, or nil if traces are off. Its error does not contain the URL,
// which may hold a secret.
func Endpoint() (*url.URL, error) {
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

// parseEndpoint reads the URL of a collector from a variable. The exporter would drop a user and a query silently.
func parseEndpoint(name string) (*url.URL, error) {
	endpoint, err := url.Parse(variable(name))
	if err != nil || endpoint.Hostname() == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return nil, fmt.Errorf("%s is not the URL of a collector; set it to one, such as http://127.0.0.1:4318", name)
	}
	if endpoint.User != nil || endpoint.RawQuery != "" || endpoint.ForceQuery || endpoint.Fragment != "" {
		return nil, fmt.Errorf("%s has a user, a query or a fragment, which would not be sent; leave it out, and put what "+
			"the collector asks for into OTEL_EXPORTER_OTLP_HEADERS", name)
	}
	return endpoint, nil
}

// variable returns a variable of the environment as the exporter reads it.
func variable(name string) string { return strings.TrimSpace(os.Getenv(name)) }
