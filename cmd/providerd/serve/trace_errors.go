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
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/resource"
	"golang.org/x/time/rate"

	"example.com/providerd/cmd/providerd/console"
)

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
