package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/resource"
	"golang.org/x/time/rate"

	"example.com/providerd/cmd/providerd/console"
)

const (
	// The first firstSDKErrors are logged immediately, later ones once per sdkErrorInterval.
	firstSDKErrors   = 3
	sdkErrorInterval = time.Minute
	// maxSDKError is the length in bytes at which an error is cut.
	maxSDKError = 512
)

var errRedirected = errors.New("the collector redirects; redirects are not followed")

// sdkErrors logs errors of the trace export.
type sdkErrors struct {
	logger *slog.Logger
	// collector is the URL without its path, which may hold a key.
	collector string
	limit     rate.Sometimes
	mutex     sync.Mutex
	// omitted counts the errors that were not logged since the last one that was.
	omitted int
}

var _ otel.ErrorHandler = (*sdkErrors)(nil)

func newSDKErrors(collector *url.URL, logger *slog.Logger) *sdkErrors {
	return &sdkErrors{
		logger: logger, collector: originOf(collector),
		limit: rate.Sometimes{First: firstSDKErrors, Interval: sdkErrorInterval},
	}
}

// Handle logs an error, or counts it as omitted.
func (e *sdkErrors) Handle(err error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.omitted++
	e.limit.Do(func() {
		e.logger.Warn("trace export failed", slog.String("collector", e.collector),
			slog.String("error", console.Truncate(reasonOfFailure(err), maxSDKError)), slog.Int("omitted", e.omitted-1))
		e.omitted = 0
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
		{resource.ErrPartialResource.Error(), "OTEL_RESOURCE_ATTRIBUTES has entries that are not NAME=VALUE"},
		{"sampler", "OTEL_TRACES_SAMPLER is not valid"},
		{"trace ID ratio", "OTEL_TRACES_SAMPLER_ARG is not valid"},
	} {
		if strings.Contains(text, known[0]) {
			return known[1]
		}
	}
	return "the collector does not accept the spans; it must speak OTLP over HTTP, usually at port 4318, and have room"
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
