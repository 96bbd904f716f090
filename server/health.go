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

// readinessTimeout is how long the database may take to report that it is ready.
const readinessTimeout = 5 * time.Second

// BeginDrain makes /readyz fail from now on, so that load balancers send requests elsewhere. All other requests are
// still served.
func (s *Server) BeginDrain() { s.isDraining.Store(true) }

// checkReady returns an error unless the database can store a provider.
func (s *Server) checkReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readinessTimeout)
	defer cancel()
	if err := s.config.Store.Ready(ctx); err != nil {
		return fmt.Errorf("check readiness: %w", err)
	}
	return nil
}

func (s *Server) ready(c echo.Context) error {
	if s.isDraining.Load() {
		return respondHealth(c, http.StatusServiceUnavailable, "draining")
	}
	if err := s.checkReady(c.Request().Context()); err != nil {
		return err
	}
	if s.config.Store.Stats().Database.IsContended {
		return respondHealth(c, http.StatusOK, "ready, but another program locks the database most of the time")
	}
	return respondHealth(c, http.StatusOK, "ready")
}

// watch sets the counters of problems to 0 and registers the gauge that repeats /readyz. It does nothing if m is nil.
func (m *Metrics) watch(server *Server) {
	if m == nil {
		return
	}
	for kind := range server.problems {
		m.problems.WithLabelValues(string(kind))
	}
	promauto.With(m.registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "providerd_ready", Help: "1 if /readyz reports that the server is ready, otherwise 0; 0 while draining.",
	}, func() float64 {
		if server.isDraining.Load() || server.checkReady(context.Background()) != nil {
			return 0
		}
		return 1
	})
}

func respondHealth(c echo.Context, code int, status string) error {
	return c.JSON(code, map[string]string{"status": status})
}
