package server

import (
	"database/sql"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"example.com/providerd/store"
)

// batchBuckets are up to 1, 2, 4 and so on, the last up to the largest batch.
const batchBuckets = 9

// watchStore registers the metrics of a store.
func watchStore(registry prometheus.Registerer, database *store.Store) {
	sizes := promauto.With(registry).NewHistogram(prometheus.HistogramOpts{
		Name: "providerd_batch_size", Help: "How many creates shared a transaction.",
		Buckets: prometheus.ExponentialBuckets(1, 2, batchBuckets),
	})
	times := promauto.With(registry).NewHistogram(prometheus.HistogramOpts{
		Name:    "providerd_commit_duration_seconds",
		Help:    "How long transactions of creates took, from the first statement until they were on disk or refused.",
		Buckets: secondsBuckets(),
	})
	database.Watch(func(creates int, took time.Duration) {
		sizes.Observe(float64(creates))
		times.Observe(took.Seconds())
	})
	registry.MustRegister(storeCollector{database})
}

// storeCollector asks a store for its figures each time the metrics are read.
type storeCollector struct{ store *store.Store }

// Describe names nothing beforehand, since the store may not know the figures of the WAL.
func (storeCollector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the figures of now. Those of the WAL are left out where the store knows of none.
func (c storeCollector) Collect(out chan<- prometheus.Metric) {
	stats := c.store.Stats()
	sendGauge(out, "queue_length", "Creates that wait for their transaction.", stats.QueueLength)
	sendGauge(out, "queue_capacity", "How many creates may wait; further ones are refused as overloaded.",
		stats.QueueCapacity)
	collectPool(out, stats.Database.Readers, "readers")
	collectPool(out, stats.Database.Writers, "writers")
	if wal := stats.Database.WAL; wal != nil {
		sendGauge(out, "wal_pages", "Pages in the WAL of SQLite.", wal.Pages)
		sendGauge(out, "wal_copied_pages", "Pages of the WAL that are copied into the database.", wal.CopiedPages)
		sendCounter(out, "checkpoints_total", "Checkpoints of the WAL that were done.", wal.Checkpoints)
		sendCounter(out, "checkpoint_failures_total", "Checkpoints of the WAL that failed.", wal.FailedCheckpoints)
	}
}

func collectPool(out chan<- prometheus.Metric, stats sql.DBStats, pool string) {
	sendGauge(out, "pool_connections_limit", "How many connections a pool of the database may have.",
		stats.MaxOpenConnections, pool)
	sendGauge(out, "pool_connections_in_use", "Connections of a pool that are in use.", stats.InUse, pool)
	sendGauge(out, "pool_connections_idle", "Connections of a pool that are idle.", stats.Idle, pool)
	sendCounter(out, "pool_waits_total", "How often a connection of a pool was waited for.", stats.WaitCount, pool)
	sendCounter(out, "pool_wait_seconds_total", "How long connections of a pool were waited for, by all who did.",
		stats.WaitDuration.Seconds(), pool)
}

// number is any that a figure has.
type number interface {
	int | int64 | uint32 | uint64 | float64
}

func sendGauge[N number](out chan<- prometheus.Metric, name, help string, value N, pool ...string) {
	out <- prometheus.MustNewConstMetric(figureDesc(name, help, pool), prometheus.GaugeValue, float64(value), pool...)
}

func sendCounter[N number](out chan<- prometheus.Metric, name, help string, value N, pool ...string) {
	out <- prometheus.MustNewConstMetric(figureDesc(name, help, pool), prometheus.CounterValue, float64(value), pool...)
}

// figureDesc gives a figure of a pool the label that names it.
func figureDesc(name, help string, pool []string) *prometheus.Desc {
	return prometheus.NewDesc("providerd_"+name, help, []string{"pool"}[:len(pool)], nil)
}
