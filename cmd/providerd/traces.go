package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"example.com/providerd/server"
)

const (
	// collectorTimeout is how long the end of the program waits for the collector to take the last spans.
	collectorTimeout = 3 * time.Second
	// maxCollectorAnswer is how many bytes of what a collector answers are read.
	maxCollectorAnswer = 64 << 10
)

// startTraces exports traces until stop is called, where the environment names a collector. Where it names one that
// cannot be used, the server goes on without: what collects traces must not keep it from serving.
func startTraces(ctx context.Context, log *serveLog) (traces *server.Traces, stop func()) {
	collector, err := collectorOfEnvironment()
	if err == nil && collector == nil {
		return nil, func() {}
	}
	var provider *sdktrace.TracerProvider
	if err == nil {
		provider, err = newTracerProvider(ctx, collector, log.Logger)
	}
	if err != nil {
		log.say(slog.LevelWarn, "traces are not exported: "+err.Error())
		return nil, func() {}
	}
	log.say(slog.LevelInfo, "exporting traces to "+originOf(collector.endpoint))
	return server.NewTraces(provider), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), collectorTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.Warn("the last traces were not exported", slog.String("error", err.Error()))
		}
	}
}

// newTracerProvider makes a provider that exports to a collector. What else the environment says, the SDK reads itself.
func newTracerProvider(
	ctx context.Context, collector *traceCollector, logger *slog.Logger,
) (*sdktrace.TracerProvider, error) {
	// The SDK knows no other places for its errors than these two of the process, which are standard error otherwise. The
	// first gets variables, which were checked, and their values.
	otel.SetLogger(logr.Discard())
	otel.SetErrorHandler(newSDKErrors(collector.endpoint, logger))
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(collector.endpoint.String()),
		otlptracehttp.WithHTTPClient(collector.client), otlptracehttp.WithMaxResponseSize(maxCollectorAnswer))
	if err != nil {
		return nil, fmt.Errorf("make exporter: %w", err)
	}
	// An error would tell of faulty variables, and they were checked.
	version, _ := builtFrom()
	program, _ := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		semconv.ServiceName("providerd"), semconv.ServiceVersion(version),
		semconv.ServiceInstanceID(uuid.NewString()),
	), resource.WithFromEnv())
	// What a program panics with may be of a body.
	bursts := newSpanBursts(sdktrace.NewBatchSpanProcessor(exporter), spanQueueSize())
	return sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(bursts), sdktrace.WithResource(program),
		sdktrace.WithoutPanicRecording()), nil
}

// originOf is a URL without its path, which may hold a key.
func originOf(address *url.URL) string { return address.Scheme + "://" + address.Host }
