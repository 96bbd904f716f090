package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// gauge returns the value of a metric that has no labels.
func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}

// Whoever reads the metrics learns what whoever asks /readyz learns.
func TestReadinessWhileDraining(t *testing.T) {
	t.Parallel()
	handler, registry := start(t).startCounted(t, 1)
	expect := func(status int, says string, metric float64) {
		t.Helper()
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		value := gauge(t, registry, "providerd_ready")
		if body := strings.TrimSpace(answer.Body.String()); answer.Code != status || body != says || value != metric {
			t.Errorf("/readyz answers %d %s, and the metric is %v; want %d %s and %v",
				answer.Code, body, value, status, says, metric)
		}
	}
	expect(http.StatusOK, `{"status":"ready"}`, 1)
	handler.BeginDrain()
	expect(http.StatusServiceUnavailable, `{"status":"draining"}`, 0)
}
