package server_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/providerd/server"
)

func (h *harness) startCounted(t *testing.T, failedAttempts int) (*server.Server, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	return h.serve(t, func(config *server.Config) {
		config.FailedAttempts = failedAttempts
		config.Metrics = server.NewMetrics(registry, config.Contract, h.database)
	}), registry
}

// seriesOf returns gauges and counters by series, such as providerd_pool_waits_total{readers}.
func seriesOf(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += "{" + label.GetValue() + "}"
			}
			// One of the two is 0.
			series[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return series
}
