// Package server answers the two operations of openapi.yaml over HTTP, from a request to the record that the store made
// of it, and serves the pages that need no token. It is the only package that knows Echo.
//
// A request passes, in this order: request id and log, route, trace, authenticate, rate limit, authorize, negotiate,
// validate (query, Idempotency-Key, body), handler, store. Errors travel up as Go errors and become problem documents
// (RFC 9457) in one place, Server.handleError.
//
// What a body may be is in server/contract, what a connection may cost in server/listener, what a provider could do
// better in server/advice, and what becomes of a create in store. Start with New and operationMiddlewares in routes.go;
// oauth2.go is where they lead.
package server

import (
	"log/slog"
	"net/http"
	"regexp"
	"sync/atomic"

	"github.com/labstack/echo/v4"

	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// Config is what a Server works with. Every field but RateLimit, Metrics and Traces is required.
type Config struct {
	Contract *contract.Document
	Store    *store.Store
	// Version is the version of the program, for the front page.
	Version string
	// Logger gets one line for each request.
	Logger *slog.Logger
	// FailedAttempts is how many wrong, expired or revoked tokens an address may show in a minute.
	FailedAttempts int
	// RateLimit is for each name of a token; the zero value for none.
	RateLimit RateLimit
	// Metrics counts what is answered; nil if nothing reads them.
	Metrics *Metrics
	// Traces makes spans; nil if nothing collects them.
	Traces *Traces
}

// Server is the HTTP API.
type Server struct {
	contract         *contract.Document
	version          string
	store            *store.Store
	logger           *slog.Logger
	problems         map[slug]problemKind
	requestIDPattern *regexp.Regexp
	// attempts counts the wrong tokens that come from each network.
	attempts *limiters
	// callers counts the requests of each name of a token; nil if they have no limit.
	callers *limiters
	bodies  *bodies
	// unreadBodies counts those that are read though their requests are refused.
	unreadBodies *room
	metrics      *Metrics
	traces       *Traces
	router       *echo.Echo
	isDraining   atomic.Bool
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.router.ServeHTTP(w, r)
}
