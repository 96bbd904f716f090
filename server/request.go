package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	requestIDHeader             = "X-Request-Id"
	contentSecurityPolicyHeader = "Content-Security-Policy"
)

// serveExchange gives the request its id, survives a panic in what follows, and logs, counts and traces the answer.
func (s *Server) serveExchange(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		current := &exchange{
			requestID: s.requestID(c.Request()), started: time.Now(), remoteAddress: remoteAddress(c.Request()),
			body: c.Request().Body,
		}
		caller := c.Request().Context()
		// The context does not end when the caller's does, since one who has closed only the sending half, and awaits the
		// answer, cannot be told from one who is gone.
		work := context.WithValue(context.WithoutCancel(caller), exchangeKey{}, current)
		c.SetRequest(c.Request().WithContext(work))
		setHeaders(c, current)
		if err := callRecovered(next, c); err != nil {
			c.Error(err)
		}
		current.took = time.Since(current.started)
		s.log(c, current, caller.Err() != nil)
		s.metrics.count(current, c.Response().Status)
		current.spans.end(c.Request().Context(), current, c.Response().Status)
		return nil
	}
}

// setHeaders sets what every answer has. A page that loads a style sheet or runs scripts has a policy of its own.
func setHeaders(c echo.Context, current *exchange) {
	header := c.Response().Header()
	header.Set(requestIDHeader, current.requestID)
	header.Set(contentSecurityPolicyHeader, "default-src 'none'; frame-ancestors 'none'")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	if isPageOverHTTPS(c.Request()) {
		header.Set("Strict-Transport-Security", "max-age=86400")
	}
	if framedLoosely(c.Request()) {
		// Where a front end and this server read the end of a body differently, what follows would be smuggled.
		header.Set("Connection", "close")
	}
}

// isPageOverHTTPS reports whether a browser asks for a page over HTTPS, so that it may keep to that for a day (RFC
// 6797). A loopback name is left out: other programs serve plain HTTP under it.
func isPageOverHTTPS(r *http.Request) bool {
	host := strings.ToLower(strings.TrimSuffix((&url.URL{Host: r.Host}).Hostname(), "."))
	isLoopback := host == "localhost" || strings.HasSuffix(host, ".localhost")
	return r.TLS != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) && !isLoopback
}

// framedLoosely reports whether the length of the body may be read in two ways. The HTTP library drops a Content-Length
// beside a Transfer-Encoding, and a Transfer-Encoding of HTTP/1.0, without a trace; RFC 9112 section 6.1 demands that
// the connection is then closed.
func framedLoosely(r *http.Request) bool {
	return len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1)
}

// requestID returns the caller's id if it is well-formed, and a new one otherwise.
func (s *Server) requestID(r *http.Request) string {
	if ids := r.Header.Values(requestIDHeader); len(ids) == 1 && s.requestIDPattern.MatchString(ids[0]) {
		return ids[0]
	}
	return rand.Text()
}

// remoteAddress is the address of the peer, without its port. What a header says of it counts for nothing: anyone can
// send it.
func remoteAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

func requestIDPattern() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9A-Za-z._~+/=:-]{1,128}$`)
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
	// maxLoggedField bounds, in bytes, what a caller chooses and the log holds.
	maxLoggedField = 256
	// maxLoggedError leaves room for the stack of a panic.
	maxLoggedError = 16 << 10
)

// cut shows that a text was longer.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:limit] + "…"
}

// log writes one line for each exchange. It holds nothing of the body, and nothing of the query but validate_only. The
// caller is gone who closed the connection, or its sending half, before the answer.
func (s *Server) log(c echo.Context, current *exchange, callerIsGone bool) {
	attributes := []slog.Attr{
		slog.String("request_id", current.requestID),
		slog.String("method", cut(c.Request().Method, maxLoggedField)),
		slog.String("path", cut(c.Request().URL.Path, maxLoggedField)),
		slog.Int("status", c.Response().Status),
		slog.Int64("bytes", c.Response().Size),
		slog.Duration("duration", current.took),
		slog.String("remote", c.Request().RemoteAddr),
	}
	if current.token.ID != 0 {
		attributes = append(attributes,
			slog.String("caller", current.token.Name), slog.Int64("token_id", int64(current.token.ID)))
	}
	if current.traceID != "" {
		attributes = append(attributes, slog.String("trace_id", current.traceID))
	}
	if current.validateOnly {
		attributes = append(attributes, slog.Bool("validate_only", true))
	}
	level := slog.LevelInfo
	if refused := current.refused; refused != nil {
		attributes = append(attributes, slog.String("problem", string(refused.slug)))
		if refused.cause != nil {
			attributes = append(attributes, slog.String("error", cut(refused.cause.Error(), maxLoggedError)))
		}
		if s.problems[refused.slug].Status >= http.StatusInternalServerError {
			level = slog.LevelError
		}
	}
	if callerIsGone || current.refused.isCutOff() || current.writeError != nil {
		attributes = append(attributes, slog.String("outcome", "canceled"))
	}
	if current.writeError != nil {
		attributes = append(attributes, slog.String("write_error", cut(current.writeError.Error(), maxLoggedError)))
	}
	s.writeLine(c.Request().Context(), current.started.Add(current.took), level, attributes)
}

// writeLine spares what the logger's own methods take: the time once more, and the line of source that logs.
func (s *Server) writeLine(ctx context.Context, at time.Time, level slog.Level, attributes []slog.Attr) {
	handler := s.logger.Handler()
	if !handler.Enabled(ctx, level) {
		return
	}
	record := slog.NewRecord(at, level, "request", 0)
	record.AddAttrs(attributes...)
	// As with the logger's own methods, an error has nowhere to go.
	_ = handler.Handle(ctx, record)
}
