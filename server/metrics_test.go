package server_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/providerd/gen/api"
	"example.com/providerd/server"
	"example.com/providerd/store"
)

// labelled returns the value of a counter with one label.
func labelled(t *testing.T, registry *prometheus.Registry, name, label string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, one := range family.GetMetric() {
			if family.GetName() == name && one.GetLabel()[0].GetValue() == label {
				return one.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("there is no %s of %s", name, label)
	return 0
}

// startCounted lets a server with metrics answer in the place of that of the harness.
func (h *harness) startCounted(t *testing.T, failedAttempts int) (*server.Server, *prometheus.Registry) {
	t.Helper()
	contract, err := server.ParseContract(t.Context(), api.Contract())
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	handler, err := server.New(server.Config{
		Contract: contract, Store: h.database, Logger: slog.New(slog.DiscardHandler), FailedAttempts: failedAttempts,
		Metrics: server.NewMetrics(registry, contract, h.database),
	})
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	h.url = listener.URL
	return handler, registry
}

// The reason why a token is refused is counted also where its address is told to wait.
func TestMetricsOfRefusedTokens(t *testing.T) {
	t.Parallel()
	h := start(t)
	_, registry := h.startCounted(t, 1)
	expired := h.newToken(t, store.TokenGrant{
		Name: "x", Operations: []string{oauth2Operation}, ExpiresIn: -time.Second,
	})
	h.post(t, oauth2Path, "{}", set("Authorization", "Bearer "+expired)).
		problem(t, http.StatusUnauthorized, "unauthorized")
	h.post(t, oauth2Path, "{}", set("Authorization", "Bearer "+h.newTokenOfAnotherDatabase(t))).
		problem(t, http.StatusTooManyRequests, "too-many-requests")
	for name, labels := range map[string][]string{
		"providerd_token_refusals_total": {"expired", "unknown"},
		"providerd_problems_total":       {"unauthorized", "too-many-requests"},
	} {
		for _, label := range labels {
			if count := labelled(t, registry, name, label); count != 1 {
				t.Errorf("%s of %s is %v, want 1", name, label, count)
			}
		}
	}
}
