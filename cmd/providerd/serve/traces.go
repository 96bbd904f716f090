package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"golang.org/x/time/rate"

	"example.com/providerd/cmd/providerd/console"
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
func startTraces(ctx context.Context, log *serveLog, version string) (provider *sdktrace.TracerProvider, stop func()) {
	endpoint, err := TraceEndpoint()
	if err == nil && endpoint != nil {
		provider, err = newTracerProvider(ctx, endpoint, version, log.Logger)
	}
	if err != nil {
		log.messages.Warn("traces are not exported: %v", err)
	}
	if provider == nil {
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

// newTracerProvider returns a new provider that exports to endpoint. The SDK also reads the environment.
func newTracerProvider(
	ctx context.Context, endpoint *url.URL, version string, logger *slog.Logger,
) (*sdktrace.TracerProvider, error) {
	// The SDK reports errors only to these process-wide handlers, which write to standard error by default.
	otel.SetLogger(logr.FromSlogHandler(messagesOnly{logger.Handler()}))
	otel.SetErrorHandler(logSDKErrors(endpoint, logger))
	// Without an explicit URL, OTEL_EXPORTER_OTLP_INSECURE, which is for gRPC, would send the collector's key unencrypted.
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint.String()),
		otlptracehttp.WithProxy(proxyExceptRedirects), otlptracehttp.WithMaxResponseSize(maxCollectorResponse))
	if err != nil {
		return nil, fmt.Errorf("start exporter: %w", err)
	}
	// The provider reads the variable, too, and reports entries that are not valid.
	program, _ := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		semconv.ServiceName("providerd"), semconv.ServiceVersion(version), semconv.ServiceInstanceID(uuid.NewString()),
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

// TraceEndpoint returns the collector's endpoint, or nil if traces are off. Its error omits the URL, perhaps a secret.
func TraceEndpoint() (*url.URL, error) {
	switch {
	case strings.EqualFold(variable("OTEL_SDK_DISABLED"), "true"),
		strings.EqualFold(variable("OTEL_TRACES_EXPORTER"), "none"),
		variable(tracesEndpoint)+variable(generalEndpoint) == "":
		return nil, nil
	case variable(tracesEndpoint) != "":
		return parseEndpoint(tracesEndpoint)
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

var errRedirected = errors.New("the collector sent a redirect, which is not followed; " +
	"set the endpoint to the final URL")

// logSDKErrors returns a handler that logs errors of the export to a collector: the first three, and then one a minute.
func logSDKErrors(collector *url.URL, logger *slog.Logger) otel.ErrorHandler {
	const first, maxBytes = 3, 512
	limit := rate.Sometimes{First: first, Interval: time.Minute}
	return otel.ErrorHandlerFunc(func(err error) {
		limit.Do(func() {
			logger.Warn("trace export failed", slog.String("collector", originOf(collector)),
				slog.String("error", console.Truncate(reasonOfFailure(err), maxBytes)))
		})
	})
}

// reasonOfFailure returns why spans were not exported. Of the collector's response it contains only the status, and it
// never contains the URL: either may hold a key. The SDK does not export most of its errors.
func reasonOfFailure(err error) string {
	text := err.Error()
	status := regexp.MustCompile(`^traces export: failed to send to \S+: (\d{3})\b`)
	if match := status.FindStringSubmatch(text); match != nil {
		code, _ := strconv.Atoi(match[1])
		return strings.TrimSpace("the collector responded with " + match[1] + " " + http.StatusText(code))
	}
	if broken, ok := errors.AsType[*net.OpError](err); ok {
		return broken.Error()
	}
	if broken, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return broken.Error()
	}
	const timedOut = "the collector did not respond in time"
	for _, known := range [][2]string{
		{"processor export timeout", timedOut},
		{context.DeadlineExceeded.Error(), timedOut},
		{"Client.Timeout exceeded", timedOut},
		{errRedirected.Error(), errRedirected.Error()},
		{resource.ErrPartialResource.Error(), "OTEL_RESOURCE_ATTRIBUTES has entries not of the form NAME=VALUE"},
		{"sampler", "OTEL_TRACES_SAMPLER is not valid"},
		{"trace ID ratio", "OTEL_TRACES_SAMPLER_ARG is not valid"},
	} {
		if strings.Contains(text, known[0]) {
			return known[1]
		}
	}
	return "the collector does not accept the spans; it must speak OTLP over HTTP, usually on port 4318, and have capacity"
}

// messagesOnly drops the attributes that the SDK logs: they include values of variables, which may be secret.
type messagesOnly struct{ slog.Handler }

// WithAttrs drops the attributes.
func (h messagesOnly) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup drops the group.
func (h messagesOnly) WithGroup(string) slog.Handler { return h }

// Handle logs only the message.
func (h messagesOnly) Handle(ctx context.Context, record slog.Record) error {
	message := slog.NewRecord(record.Time, record.Level, "OpenTelemetry: "+record.Message, 0)
	return h.Handler.Handle(ctx, message) //nolint:wrapcheck // A wrapping handler adds no context.
}

// originOf returns a URL without its path, which may hold a key.
func originOf(address *url.URL) string { return address.Scheme + "://" + address.Host }
