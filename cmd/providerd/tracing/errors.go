package tracing

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
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
	// firstSDKErrors are logged as they come, those that follow once in each sdkErrorInterval.
	firstSDKErrors   = 3
	sdkErrorInterval = time.Minute
	// maxSDKError bounds, in bytes, what the log holds of one.
	maxSDKError = 512
)

var errRedirected = errors.New("the collector redirects, which is not followed")

// sdkErrors logs what goes wrong with the export of traces.
type sdkErrors struct {
	logger *slog.Logger
	// collector is where they are sent to, without what may be a key.
	collector string
	limit     rate.Sometimes
	mutex     sync.Mutex
	// omitted counts those that were not logged since the last one that was.
	omitted int
}

var _ otel.ErrorHandler = (*sdkErrors)(nil)

func newSDKErrors(collector *url.URL, logger *slog.Logger) *sdkErrors {
	return &sdkErrors{
		logger: logger, collector: originOf(collector),
		limit: rate.Sometimes{First: firstSDKErrors, Interval: sdkErrorInterval},
	}
}

// Handle logs an error, or counts it for the next one that is logged.
func (e *sdkErrors) Handle(err error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.omitted++
	e.limit.Do(func() {
		e.logger.Warn("traces are not exported as they should be", slog.String("collector", e.collector),
			slog.String("error", console.Shortened(reasonOfFailure(err), maxSDKError)), slog.Int("omitted", e.omitted-1))
		e.omitted = 0
	})
}

// reasonOfFailure says why spans were not exported, without anything that a collector has answered but its status, and
// without its URL: both may hold the key that it asks for.
func reasonOfFailure(err error) string {
	text := err.Error()
	status := regexp.MustCompile(`^traces export: failed to send to \S+: (\d{3})\b`)
	if answer := status.FindStringSubmatch(text); answer != nil {
		code, _ := strconv.Atoi(answer[1])
		return strings.TrimSpace("the collector answers " + answer[1] + " " + http.StatusText(code))
	}
	if broken, ok := errors.AsType[*net.OpError](err); ok {
		return broken.Error()
	}
	if broken, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return broken.Error()
	}
	if errors.Is(err, resource.ErrPartialResource) {
		return "OTEL_RESOURCE_ATTRIBUTES has entries that are not NAME=VALUE"
	}
	if reason := reasonInText(text); reason != "" {
		return reason
	}
	timed, ok := errors.AsType[net.Error](err)
	switch isTimeout := ok && timed.Timeout(); {
	case errors.Is(err, errRedirected):
		return errRedirected.Error()
	case isTimeout, errors.Is(err, context.DeadlineExceeded):
		return lateCollector
	case errors.Is(err, http.ErrSchemeMismatch):
		return "the collector does not speak HTTPS"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the collector closes the connection"
	default:
		return "the collector does not answer as OTLP over HTTP is answered, which it takes at port 4318 most often"
	}
}

const lateCollector = "the collector does not answer in time"

// reasonInText returns the reason of an error that the SDK does not export, or "".
func reasonInText(text string) string {
	switch {
	case strings.Contains(text, "retry-able request failure: body: "):
		return "the collector answers that it is too busy or away (429, 502, 503 or 504), also when asked again"
	case strings.Contains(text, "processor export timeout"):
		return lateCollector
	case strings.Contains(text, "OTLP partial success: "):
		return "the collector does not take all that it is sent"
	case strings.Contains(text, "response body too large"):
		return "the collector answers more than is read"
	case strings.Contains(text, "sampler"), strings.Contains(text, "trace ID ratio"):
		return "OTEL_TRACES_SAMPLER or OTEL_TRACES_SAMPLER_ARG is not valid"
	default:
		return ""
	}
}

// messagesOnly drops what the SDK logs beside its messages: the values of variables, which may be secrets.
type messagesOnly struct{ slog.Handler }

// WithAttrs drops the attributes.
func (h messagesOnly) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup drops the group.
func (h messagesOnly) WithGroup(string) slog.Handler { return h }

// Handle logs the message alone.
func (h messagesOnly) Handle(ctx context.Context, record slog.Record) error {
	message := slog.NewRecord(record.Time, record.Level, "OpenTelemetry: "+record.Message, 0)
	return h.Handler.Handle(ctx, message) //nolint:wrapcheck // A handler in front of another adds nothing to its error.
}

// originOf is a URL without its path, which may hold a key.
func originOf(address *url.URL) string { return address.Scheme + "://" + address.Host }
