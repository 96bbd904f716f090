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
	registry.MustRegister(newStoreCollector(database))
}

// storeCollector asks a store for its figures each time the metrics are read.
type storeCollector struct {
	store *store.Store

	queueLength, queueCapacity                             *prometheus.Desc
	poolLimit, poolInUse, poolIdle, poolWaits, poolWaiting *prometheus.Desc
	walPages, walCopied, checkpoints, checkpointFailures   *prometheus.Desc
}

func newStoreCollector(database *store.Store) *storeCollector {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("providerd_"+name, help, labels, nil)
	}
	const pool = "pool"
	return &storeCollector{
		store: database,

		queueLength:   describe("queue_length", "Creates that wait for their transaction."),
		queueCapacity: describe("queue_capacity", "How many creates may wait; further ones are refused as overloaded."),

		poolLimit: describe("pool_connections_limit", "How many connections a pool of the database may have.", pool),
		poolInUse: describe("pool_connections_in_use", "Connections of a pool that are in use.", pool),
		poolIdle:  describe("pool_connections_idle", "Connections of a pool that are idle.", pool),
		poolWaits: describe("pool_waits_total", "How often a connection of a pool was waited for.", pool),
		poolWaiting: describe("pool_wait_seconds_total",
			"How long connections of a pool were waited for, by all who did.", pool),

		walPages:           describe("wal_pages", "Pages in the WAL of SQLite."),
		walCopied:          describe("wal_copied_pages", "Pages of the WAL that are copied into the database."),
		checkpoints:        describe("checkpoints_total", "Checkpoints of the WAL that were done."),
		checkpointFailures: describe("checkpoint_failures_total", "Checkpoints of the WAL that failed."),
	}
}

// Describe sends what Collect may send.
func (c *storeCollector) Describe(out chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{
		c.queueLength, c.queueCapacity, c.poolLimit, c.poolInUse, c.poolIdle, c.poolWaits, c.poolWaiting,
		c.walPages, c.walCopied, c.checkpoints, c.checkpointFailures,
	} {
		out <- one
	}
}

// Collect sends the figures of now. Those of the WAL are left out where the store knows of none.
func (c *storeCollector) Collect(out chan<- prometheus.Metric) {
	stats := c.store.Stats()
	sendGauge(out, c.queueLength, stats.QueueLength)
	sendGauge(out, c.queueCapacity, stats.QueueCapacity)
	c.collectPool(out, stats.Database.Readers, "readers")
	c.collectPool(out, stats.Database.Writers, "writers")
	if wal := stats.Database.WAL; wal != nil {
		sendGauge(out, c.walPages, wal.Pages)
		sendGauge(out, c.walCopied, wal.CopiedPages)
		sendCounter(out, c.checkpoints, wal.Checkpoints)
		sendCounter(out, c.checkpointFailures, wal.FailedCheckpoints)
	}
}

func (c *storeCollector) collectPool(out chan<- prometheus.Metric, stats sql.DBStats, name string) {
	sendGauge(out, c.poolLimit, stats.MaxOpenConnections, name)
	sendGauge(out, c.poolInUse, stats.InUse, name)
	sendGauge(out, c.poolIdle, stats.Idle, name)
	sendCounter(out, c.poolWaits, stats.WaitCount, name)
	sendCounter(out, c.poolWaiting, stats.WaitDuration.Seconds(), name)
}

// number is any that a figure has.
type number interface {
	int | int64 | uint32 | uint64 | float64
}

func sendGauge[N number](out chan<- prometheus.Metric, desc *prometheus.Desc, value N, labels ...string) {
	out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
}

func sendCounter[N number](out chan<- prometheus.Metric, desc *prometheus.Desc, value N, labels ...string) {
	out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
}
