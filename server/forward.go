package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"example.com/providerd/server/contract"
	"example.com/providerd/server/listener"
)

// Contract is contract.Document.
type Contract struct{ *contract.Document }

// ParseContract is contract.Parse.
func ParseContract(ctx context.Context, text []byte) (*Contract, error) {
	document, err := contract.Parse(ctx, text)
	return &Contract{document}, err
}

// Operations is OperationIDs.
func (c *Contract) Operations() []string { return c.OperationIDs() }

// Check is Validate.
func (c *Contract) Check(ctx context.Context, operation string, body []byte) ([]contract.Violation, error) {
	return c.Validate(ctx, operation, body)
}

// Limits is listener.Limits.
type Limits = listener.Limits

// DefaultLimits is listener.DefaultLimits.
func DefaultLimits() Limits { return listener.DefaultLimits() }

// Serve is listener.Serve.
func (s *Server) Serve(ctx context.Context, open net.Listener, limits Limits, security *tls.Config) error {
	return listener.Serve(ctx, open, s, limits, security, s.logger)
}

// ServeBeside is listener.Serve.
func (s *Server) ServeBeside(ctx context.Context, ops http.Handler, open net.Listener, limits Limits) error {
	return listener.Serve(ctx, open, ops, limits, nil, s.logger)
}
