package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"example.com/providerd/server/contract"
	"example.com/providerd/store"
	"example.com/providerd/store/token"
)

// exchange is one request and its response.
type exchange struct {
	requestID string
	started   time.Time
	// took is the time from the request header to the end of the response; zero until then.
	took time.Duration
	// waited is how long the database took to find the token.
	waited time.Duration
	// operation is nil for other paths.
	operation *contract.Operation
	// token is the access token of the caller; the zero value until it is found.
	token token.Token
	// remoteAddress is the IP address of the client.
	remoteAddress string
	// isForwardedMalformed is true if a trusted proxy sent an address that cannot be read.
	isForwardedMalformed bool
	// body is the unread part of the request body.
	body io.Reader
	// sent is the validated body; empty before it is validated and once the handler has it.
	sent contract.Object
	// reserved is the memory of the body and of the record that is compared with it.
	reserved bodyReservation
	// validateOnly is true for a validation, which stores nothing.
	validateOnly bool
	// replayed is true if the response is a record that an earlier request created.
	replayed bool
	// refused is why the request was refused; nil if it was not.
	refused *refusal
	// writeError is why the response could not be sent.
	writeError error
	// traceID is "" if the request is not part of a trace.
	traceID string
	// spans is nil if the request is not recorded.
	spans *spans
}

type exchangeKey struct{}

// exchangeOf returns the exchange that a context belongs to. It panics if there is none.
func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// spans holds the data for the spans of one request, which are created after the response. A nil pointer records
// nothing.
type spans struct {
	tracer trace.Tracer
	root   trace.Span
	// fixed holds the attributes that all requests of the operation have in common.
	fixed []attribute.KeyValue
	// validation is when the body was validated; zero if it was not.
	validation interval
	// timing is filled in by the store.
	timing store.Timing
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

const (
	requestIDHeader             = "X-Request-Id"
	contentSecurityPolicyHeader = "Content-Security-Policy"
	strictPolicy                = "default-src 'none'; frame-ancestors 'none'"
)

// serveExchange sets the request id, recovers from panics, and logs, counts and traces the response.
func (s *Server) serveExchange(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		address, isMalformed := s.config.Proxies.clientAddress(c.Request())
		current := &exchange{
			requestID: requestID(c.Request()), started: time.Now(), remoteAddress: address,
			isForwardedMalformed: isMalformed, body: c.Request().Body,
		}
		// The context does not end with the caller's: a caller who has closed only the sending half of the connection still
		// waits for the response, and cannot be distinguished from one who has disconnected.
		detached := context.WithValue(context.WithoutCancel(c.Request().Context()), exchangeKey{}, current)
		c.SetRequest(c.Request().WithContext(detached))
		s.setHeaders(c, current)
		if err := callRecovered(next, c); err != nil {
			c.Error(err)
		}
		current.took = time.Since(current.started)
		s.log(c, current)
		s.config.Metrics.count(current, c.Response().Status)
		current.spans.end(c.Request().Context(), current, c.Response().Status)
		return nil
	}
}

// constantHeader returns the fields that every response has. Pages that load a style sheet or run scripts replace the
// policy. Files replace Cache-Control: records contain secrets, and the other responses change.
func constantHeader() http.Header {
	return http.Header{
		echo.HeaderCacheControl:        {"no-store"},
		contentSecurityPolicyHeader:    {strictPolicy},
		"Cross-Origin-Resource-Policy": {"same-origin"},
		"Referrer-Policy":              {"no-referrer"},
		"X-Content-Type-Options":       {"nosniff"},
	}
}

func (s *Server) setHeaders(c echo.Context, current *exchange) {
	header := c.Response().Header()
	maps.Copy(header, s.constantHeader)
	header.Set(requestIDHeader, current.requestID)
	if isPageOverHTTPS(c.Request()) {
		header.Set("Strict-Transport-Security", "max-age=86400")
	}
	if isFramedAmbiguously(c.Request()) {
		// If a front end found another end of the body, the next request on the connection could be smuggled.
		header.Set("Connection", "close")
	}
}

// isPageOverHTTPS reports whether a page is requested over HTTPS, so that a browser should use only HTTPS for a day
// (RFC 6797). Loopback names are excluded, because other programs serve plain HTTP under them.
func isPageOverHTTPS(r *http.Request) bool {
	host := strings.ToLower(strings.TrimSuffix((&url.URL{Host: r.Host}).Hostname(), "."))
	isLoopback := host == "localhost" || strings.HasSuffix(host, ".localhost")
	return r.TLS != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) && !isLoopback
}

// isFramedAmbiguously reports whether another HTTP implementation may find another end of the body. net/http silently
// drops a Content-Length if there is a Transfer-Encoding, and the Transfer-Encoding of HTTP/1.0; in both cases RFC 9112
// section 6.1 requires closing the connection.
func isFramedAmbiguously(r *http.Request) bool {
	return len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1)
}

// requestID returns the caller's id if it is well-formed, and a new one otherwise.
func requestID(r *http.Request) string {
	const allowed = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._~+/=:-"
	ids := r.Header.Values(requestIDHeader)
	if len(ids) == 1 && ids[0] != "" && len(ids[0]) <= 128 && strings.TrimLeft(ids[0], allowed) == "" {
		return ids[0]
	}
	return rand.Text()
}

func callRecovered(next echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &refusal{slug: internal, cause: fmt.Errorf("panic: %v\n%s", value, debug.Stack())}
		}
	}()
	return next(c)
}

const (
	// maxLoggedField is how many bytes of a value chosen by the caller are logged.
	maxLoggedField = 256
	// maxLoggedError is the same for errors; it has room for the stack of a panic.
	maxLoggedError = 16 << 10
)

// truncate returns at most limit bytes of a string, with an ellipsis if it was longer.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:limit] + "…"
}

// log writes one line for each exchange, at level debug for probes and pages that succeed. It contains nothing of the
// body, and of the query only validate_only.
func (s *Server) log(c echo.Context, current *exchange) {
	attributes := append(make([]slog.Attr, 0, 16),
		slog.String("request_id", current.requestID),
		slog.String("method", truncate(c.Request().Method, maxLoggedField)),
		slog.String("path", truncate(withoutToken(c.Request().URL.Path), maxLoggedField)),
		slog.Int("status", c.Response().Status),
		slog.Int64("bytes", c.Response().Size),
		slog.Float64("duration_ms", float64(current.took)/float64(time.Millisecond)),
	)
	attributes = current.appendAddresses(attributes, c.Request().RemoteAddr)
	if current.token.ID != 0 {
		attributes = append(attributes,
			slog.String("caller", current.token.Name), slog.Int64("token_id", current.token.ID))
	}
	if current.traceID != "" {
		attributes = append(attributes, slog.String("trace_id", current.traceID))
	}
	if current.validateOnly {
		attributes = append(attributes, slog.Bool("validate_only", true))
	}
	level := slog.LevelInfo
	if current.operation == nil && c.Response().Status < http.StatusBadRequest {
		level = slog.LevelDebug
	}
	if refused := current.refused; refused != nil {
		attributes = append(attributes, slog.String("problem", string(refused.slug)))
		if refused.cause != nil {
			attributes = append(attributes, slog.String("error", truncate(refused.cause.Error(), maxLoggedError)))
		}
		if s.problems[refused.slug].Status >= http.StatusInternalServerError {
			level = slog.LevelError
		}
	}
	if current.refused.isCutOff() || current.writeError != nil {
		attributes = append(attributes, slog.String("outcome", "canceled"))
	}
	if current.writeError != nil {
		attributes = append(attributes, slog.String("write_error", truncate(current.writeError.Error(), maxLoggedError)))
	}
	s.writeLine(c.Request().Context(), current.started.Add(current.took), level, attributes)
}

// withoutToken cuts off an access token that was put into a path by mistake.
func withoutToken(path string) string {
	before, _, found := strings.Cut(path, tokenPrefix)
	if found {
		before += tokenPrefix + "…"
	}
	return before
}

// appendAddresses appends the address of the peer and, if a trusted proxy sent it, the address of its client.
func (e *exchange) appendAddresses(attributes []slog.Attr, peer string) []slog.Attr {
	attributes = append(attributes, slog.String("remote", peer))
	if host, _, err := net.SplitHostPort(peer); err == nil && host != e.remoteAddress {
		attributes = append(attributes, slog.String("client", e.remoteAddress))
	}
	return attributes
}

// writeLine logs without what the methods of the logger add: a second clock reading and the source line.
func (s *Server) writeLine(ctx context.Context, at time.Time, level slog.Level, attributes []slog.Attr) {
	handler := s.config.Logger.Handler()
	if !handler.Enabled(ctx, level) {
		return
	}
	record := slog.NewRecord(at, level, "request", 0)
	record.AddAttrs(attributes...)
	// The methods of the logger ignore the error, too.
	_ = handler.Handle(ctx, record)
}
