// Package server implements the two operations of openapi.yaml over HTTP, and serves the pages that need no token. It
// is the only package that uses Echo.
//
// A request passes, in this order: request id and log, route, trace, authenticate, rate limit, authorize, negotiate,
// validate (query, header, body), handler, store. Errors travel up as Go errors and become problem documents
// (RFC 9457) in one place, Server.handleError.
//
// Package server/contract validates bodies, server/listener limits connections, server/advice checks settings against
// standards, and store stores providers. Start with New and check, then read create.go.
package server

import (
	"html/template"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"example.com/providerd/gen/api"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// Config configures a Server. All fields except RateLimit, Proxies, Metrics and Traces are required.
type Config struct {
	Contract *contract.Document
	Store    *store.Store
	// Version is the version of the program, for the front page.
	Version string
	// Logger gets one line for each request.
	Logger *slog.Logger
	// FailedAttempts is how many unknown, expired or revoked tokens an address may send per minute.
	FailedAttempts int
	// RateLimit applies to each token name; the zero value means no limit.
	RateLimit RateLimit
	// Proxies report the addresses of their clients; the zero value trusts none.
	Proxies Proxies
	// Metrics counts requests; nil for none.
	Metrics *Metrics
	// Traces creates spans; nil for none.
	Traces *Traces
}

// Server is the HTTP API.
type Server struct {
	config         Config
	problems       map[slug]problemKind
	constantHeader http.Header
	// attempts counts the invalid tokens from each network.
	attempts *limiters
	// callers counts the requests of each token name; nil if they have no limit.
	callers *limiters
	bodies  *bodies
	// unreadBodies counts the bodies of refused requests that are being read.
	unreadBodies *room
	router       *echo.Echo
	pages        *template.Template
	isDraining   atomic.Bool
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.router.ServeHTTP(w, r)
}

var _ api.StrictServerInterface = (*Server)(nil)

// New returns a new Server. It returns an error if a page or an example of the contract cannot be read.
func New(config Config) (*Server, error) {
	server := &Server{
		config:         config,
		problems:       map[slug]problemKind{},
		constantHeader: constantHeader(),
		attempts:       newLimiters(RateLimit{Requests: config.FailedAttempts, Window: time.Minute}),
		bodies:         newBodies(),
		unreadBodies:   newRoom(maxUnreadBodies, maxUnreadBodies/4),
		router:         echo.New(),
	}
	if config.RateLimit != (RateLimit{}) {
		server.callers = newLimiters(config.RateLimit)
	}
	kinds, err := problemKinds(config.Contract)
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		server.problems[kind.Slug()] = kind
	}
	server.router.HTTPErrorHandler = server.handleError
	server.router.Binder = binder{}
	server.router.Use(server.serveExchange)
	if err := server.registerPages(server.router, kinds); err != nil {
		return nil, err
	}
	chains := map[string][]echo.MiddlewareFunc{}
	for _, op := range config.Contract.Operations() {
		chains[op.ID] = []echo.MiddlewareFunc{server.check(op)}
	}
	api.RegisterHandlersWithOptions(server.router, api.NewStrictHandler(server, nil), api.RegisterHandlersOptions{
		BaseURL: config.Contract.BaseURL, OperationMiddlewares: chains,
	})
	config.Metrics.watch(server)
	return server, nil
}

// check returns the middleware that checks a request in this order. No body is read before its caller is authenticated.
func (s *Server) check(op *contract.Operation) echo.MiddlewareFunc {
	checks := []echo.HandlerFunc{
		s.config.Traces.begin(op), s.authenticate, limitRate(s.callers), authorize(op), negotiate, validateQuery,
		validateHeader(op), prefer,
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			exchangeOf(c.Request().Context()).operation = op
			for _, check := range checks {
				if err := check(c); err != nil {
					return err
				}
			}
			return validateBody(c, op, s.bodies, next)
		}
	}
}
