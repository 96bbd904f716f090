package server_test

import (
	"database/sql"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/providerd/server"
	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
)

func (h *harness) startCounted(t *testing.T, failedAttempts int) (*server.Server, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	return h.serve(t, func(config *server.Config) {
		config.FailedAttempts = failedAttempts
		config.Metrics = server.NewMetrics(registry, config.Contract, h.database)
	}), registry
}

// settledFigures is a database with figures set by the test.
type settledFigures struct {
	database.Database
	stats database.Stats
}

func (d settledFigures) Stats() database.Stats { return d.stats }

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

// Each figure of a store, all of them different, has its own series.
func TestMetricsOfTheStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept, err := sqlite.Create(t.Context(), filepath.Join(dir, "test.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := store.Create(t.Context(), settledFigures{kept, database.Stats{
		Readers: sql.DBStats{MaxOpenConnections: 11, InUse: 12, Idle: 13, WaitCount: 14, WaitDuration: 1500 * time.Millisecond},
		Writers: sql.DBStats{MaxOpenConnections: 21, InUse: 22, Idle: 23, WaitCount: 24, WaitDuration: 2500 * time.Millisecond},
		WAL:     &database.WALStats{Pages: 31, CopiedPages: 32, Checkpoints: 33, FailedCheckpoints: 34},
	}}, filepath.Join(dir, "keyset.json"))
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	server.NewMetrics(registry, load(t), opened)
	series := seriesOf(t, registry)
	for name, want := range map[string]float64{
		"queue_capacity":                  float64(opened.Stats().QueueCapacity),
		"pool_connections_limit{readers}": 11, "pool_connections_in_use{readers}": 12, "pool_connections_idle{readers}": 13,
		"pool_waits_total{readers}": 14, "pool_wait_seconds_total{readers}": 1.5,
		"pool_connections_limit{writers}": 21, "pool_connections_in_use{writers}": 22, "pool_connections_idle{writers}": 23,
		"pool_waits_total{writers}": 24, "pool_wait_seconds_total{writers}": 2.5,
		"wal_pages": 31, "wal_copied_pages": 32, "checkpoints_total": 33, "checkpoint_failures_total": 34,
	} {
		if got, ok := series["providerd_"+name]; !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
}
