package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"example.com/providerd/server/contract"
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
	token         token.Token
	remoteAddress string
	// isForwardedMalformed is true if a trusted proxy sent an address that cannot be read.
	isForwardedMalformed bool
	// body is the unread part of the request body.
	body io.Reader
	// sent is the validated body; empty before it is validated and once the handler has it.
	sent contract.Object
	// reserved is the memory of the body and of the record that is compared with it.
	reserved     bodyReservation
	validateOnly bool
	// lenient is true if unknown fields are ignored.
	lenient bool
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
