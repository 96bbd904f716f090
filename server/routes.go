package server

import (
	"time"

	"github.com/labstack/echo/v4"

	"example.com/providerd/gen/api"
	"example.com/providerd/server/contract"
)

var _ api.StrictServerInterface = (*Server)(nil)

// New returns a new Server. It returns an error if a page or an example of the contract cannot be read.
func New(config Config) (*Server, error) {
	server := &Server{
		contract:         config.Contract,
		version:          config.Version,
		store:            config.Store,
		logger:           config.Logger,
		problems:         map[slug]problemKind{},
		requestIDPattern: requestIDPattern(),
		attempts:         newLimiters(RateLimit{Requests: config.FailedAttempts, Window: time.Minute}),
		bodies:           newBodies(),
		proxies:          config.Proxies,
		unreadBodies:     newRoom(maxUnreadBodies, maxUnreadBodies/4),
		metrics:          config.Metrics,
		traces:           config.Traces,
		router:           echo.New(),
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
	api.RegisterHandlersWithOptions(server.router, api.NewStrictHandler(server, nil), api.RegisterHandlersOptions{
		BaseURL: config.Contract.BaseURL, OperationMiddlewares: server.operationMiddlewares(),
	})
	server.metrics.watch(server)
	return server, nil
}

// operationMiddlewares returns the middleware of each operation, outermost first. Nothing of the body is read before
// the caller is authenticated.
func (s *Server) operationMiddlewares() map[string][]echo.MiddlewareFunc {
	chains := map[string][]echo.MiddlewareFunc{}
	for _, op := range s.contract.Operations() {
		chain := []echo.MiddlewareFunc{setOperation(op)}
		if s.traces != nil {
			chain = append(chain, s.traces.begin(op))
		}
		chains[op.ID] = append(chain, s.authenticate, limitRate(s.callers), authorize(op), negotiate, validateQuery,
			validateIdempotencyKey(op), prefer, validateBody(op, s.bodies), limitStorage)
	}
	return chains
}

// setOperation sets the operation of the exchange.
func setOperation(op *contract.Operation) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			exchangeOf(c.Request().Context()).operation = op.ID
			return next(c)
		}
	}
}
