package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// What /readyz says of a server whose database answers, and of one that is about to end.
const (
	statusReady    = "ready"
	statusDraining = "draining"
)

// readinessTimeout is how long the database may take to show whether it is ready.
const readinessTimeout = 5 * time.Second

// BeginDrain makes /readyz fail from now on, while everything else goes on to be served: whoever sends requests to the
// server is to send them elsewhere.
func (s *Server) BeginDrain() { s.isDraining.Store(true) }

// readiness asks the database, because a server without it can do nothing.
func (s *Server) readiness(ctx context.Context) (string, error) {
	if s.isDraining.Load() {
		return statusDraining, nil
	}
	if err := s.store.Ready(ctx); err != nil {
		return "", fmt.Errorf("check readiness: %w", err)
	}
	return statusReady, nil
}

// ready answers whether requests are to be sent to the server.
func (s *Server) ready(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readinessTimeout)
	defer cancel()
	status, err := s.readiness(ctx)
	if err != nil {
		return err
	}
	if status != statusReady {
		return answerHealth(c, http.StatusServiceUnavailable, status)
	}
	return answerHealth(c, http.StatusOK, status)
}

// watchReadiness adds what /readyz says of a server to the metrics, unless they are nil.
func (m *Metrics) watchReadiness(server *Server) {
	if m == nil {
		return
	}
	promauto.With(m.registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "providerd_ready", Help: "1 where /readyz says that the server is ready, or else 0, also while it drains.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), readinessTimeout)
		defer cancel()
		if status, err := server.readiness(ctx); err != nil || status != statusReady {
			return 0
		}
		return 1
	})
}
