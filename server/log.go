package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// maxLoggedField is how many bytes of a value chosen by the caller are logged.
	maxLoggedField = 256
	// maxLoggedError is the same for errors; it has room for the stack of a panic.
	maxLoggedError = 16 << 10
)

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
