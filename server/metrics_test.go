package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/providerd/server"
	"example.com/providerd/store"
)

// startCounted starts a server with metrics.
func (h *harness) startCounted(t *testing.T, failedAttempts int) (*server.Server, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	return h.serve(t, func(config *server.Config) {
		config.FailedAttempts = failedAttempts
		config.Metrics = server.NewMetrics(registry, config.Contract, h.database)
	}), registry
}

// The reason for refusing a token is counted even if its address must wait.
func TestMetricsOfRefusedTokens(t *testing.T) {
	t.Parallel()
	h := start(t)
	_, registry := h.startCounted(t, 1)
	expired := h.newToken(t, store.TokenGrant{
		Name: "x", Operations: []string{oauth2Operation}, ExpiresIn: -time.Second,
	})
	h.post(t, oauth2Path, "{}", set("Authorization", "Bearer "+expired)).
		problem(t, http.StatusUnauthorized, "unauthorized")
	h.post(t, oauth2Path, "{}", set("Authorization", "Bearer "+start(t).token)).
		problem(t, http.StatusTooManyRequests, "too-many-requests")
	series := seriesOf(t, registry)
	for _, name := range []string{
		"providerd_token_refusals_total{expired}", "providerd_token_refusals_total{unknown}",
		"providerd_problems_total{unauthorized}", "providerd_problems_total{too-many-requests}",
	} {
		if series[name] != 1 {
			t.Errorf("%s is %v, want 1", name, series[name])
		}
	}
}
