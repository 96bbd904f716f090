package server

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"example.com/providerd/server/contract"
	"example.com/providerd/store"
	"example.com/providerd/store/token"
)

// otherOperation labels requests of everything except the operations: pages and unknown paths.
const otherOperation = "other"

// Metrics counts requests and responses. Label values come from the program, never from a caller.
type Metrics struct {
	registry      prometheus.Registerer
	requests      *prometheus.CounterVec
	durations     *prometheus.HistogramVec
	problems      *prometheus.CounterVec
	violations    *prometheus.CounterVec
	replays       *prometheus.CounterVec
	tokenRefusals *prometheus.CounterVec
	limited       *prometheus.CounterVec
	malformed     prometheus.Counter
}

// NewMetrics returns new metrics for one server and its store, and registers them. All begin at 0, except
// providerd_requests_total, which has too many statuses. It panics if the registry has them, and New if a server has.
func NewMetrics(registry prometheus.Registerer, openapi *contract.Document, database *store.Store) *Metrics {
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return promauto.With(registry).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	metrics := &Metrics{
		registry: registry,
		requests: counters("providerd_requests_total",
			"Responses sent, by operation and HTTP status code.", "operation", "status"),
		durations: promauto.With(registry).NewHistogramVec(prometheus.HistogramOpts{
			Name:    "providerd_request_duration_seconds",
			Help:    "Time from receiving a request header to finishing its response, by operation.",
			Buckets: secondsBuckets(),
		}, []string{"operation"}),
		problems: counters("providerd_problems_total",
			"Problem documents sent, by problem type; /readyz failures count too.", "type"),
		violations: counters("providerd_violations_total", "Violations listed in problem documents, by code.", "code"),
		replays: counters("providerd_replays_total",
			"Creates that returned the record of an earlier create with the same Idempotency-Key, by operation.", "operation"),
		tokenRefusals: counters("providerd_token_refusals_total",
			"Requests refused because of their access token, by reason.", "reason"),
		limited: counters("providerd_rate_limited_total",
			"Requests refused by --rate-limit, by operation.", "operation"),
		malformed: promauto.With(registry).NewCounter(prometheus.CounterOpts{
			Name: "providerd_malformed_forwarded_total",
			Help: "Requests from a trusted proxy whose X-Forwarded-For is malformed.",
		}),
	}
	metrics.begin(openapi)
	watchStore(registry, database)
	return metrics
}

// secondsBuckets returns buckets from less than a create on a fast disk takes to the timeout of a request.
func secondsBuckets() []float64 {
	return []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
}

// begin sets counters to 0, because a rate needs a previous value.
func (m *Metrics) begin(openapi *contract.Document) {
	m.durations.WithLabelValues(otherOperation)
	for _, operation := range openapi.OperationIDs() {
		m.durations.WithLabelValues(operation)
		m.replays.WithLabelValues(operation)
		m.limited.WithLabelValues(operation)
	}
	for _, code := range contract.ViolationCodes() {
		m.violations.WithLabelValues(code)
	}
	for _, reason := range []tokenRefusal{
		tokenMissing, tokenMistyped, tokenUnknown, tokenExpired, tokenRevoked, tokenForbidden,
	} {
		m.tokenRefusals.WithLabelValues(string(reason))
	}
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

// count counts a finished exchange. It does nothing if m is nil.
func (m *Metrics) count(finished *exchange, status int) {
	if m == nil {
		return
	}
	operation := otherOperation
	if finished.operation != nil {
		operation = finished.operation.ID
	}
	m.requests.WithLabelValues(operation, strconv.Itoa(status)).Inc()
	m.durations.WithLabelValues(operation).Observe(finished.took.Seconds())
	if finished.isForwardedMalformed {
		m.malformed.Inc()
	}
	if finished.replayed {
		m.replays.WithLabelValues(operation).Inc()
	}
	if finished.refused != nil {
		m.countRefusal(finished.refused, operation)
	}
}

func (m *Metrics) countRefusal(refused *refusal, operation string) {
	m.problems.WithLabelValues(string(refused.slug)).Inc()
	for _, violation := range refused.violations {
		m.violations.WithLabelValues(violation.Code).Inc()
	}
	if refused.token != "" {
		m.tokenRefusals.WithLabelValues(string(refused.token)).Inc()
	}
	if refused.isLimited {
		m.limited.WithLabelValues(operation).Inc()
	}
}

// batchBuckets is the number of buckets for 1, 2, 4 and so on, up to the largest batch.
const batchBuckets = 9

func watchStore(registry prometheus.Registerer, database *store.Store) {
	sizes := promauto.With(registry).NewHistogram(prometheus.HistogramOpts{
		Name: "providerd_batch_size", Help: "Creates committed in one transaction.",
		Buckets: prometheus.ExponentialBuckets(1, 2, batchBuckets),
	})
	times := promauto.With(registry).NewHistogram(prometheus.HistogramOpts{
		Name:    "providerd_commit_duration_seconds",
		Help:    "Time from the first statement of a create transaction until it is durable or has failed.",
		Buckets: secondsBuckets(),
	})
	database.Watch(func(creates int, took time.Duration) {
		sizes.Observe(float64(creates))
		times.Observe(took.Seconds())
	})
	registry.MustRegister(&storeCollector{store: database})
}

const (
	// expiryNotice is how long before the expiry of its newest token a caller is counted.
	expiryNotice = 14 * 24 * time.Hour
	// expiryInterval is how often the database is read, and expiryTimeout how long that can take.
	expiryInterval = time.Minute
	expiryTimeout  = 5 * time.Second
)

// storeCollector reads the figures of a store whenever metrics are scraped. When tokens end and how old the newest key
// is, it reads from the database, at most once per expiryInterval.
type storeCollector struct {
	store *store.Store
	mutex sync.Mutex
	// readAt is when tokens and keyCreated were read.
	readAt time.Time
	// tokens is nil if it could not be read, and keyCreated zero.
	tokens     *token.Expiry
	keyCreated time.Time
}

// Describe sends nothing, because not every store has a WAL, and what cannot be read is omitted.
func (*storeCollector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the current figures, and what was read last.
func (c *storeCollector) Collect(out chan<- prometheus.Metric) {
	stats := c.store.Stats()
	send(out, "queue_length", "Creates waiting for a transaction.", stats.QueueLength)
	send(out, "queue_capacity", "Maximum number of waiting creates; more are refused as overloaded.", stats.QueueCapacity)
	collectPool(out, stats.Database.Readers, "readers")
	collectPool(out, stats.Database.Writers, "writers")
	if free := stats.Database.FreeBytes; free != nil {
		send(out, "disk_free_bytes", "Free bytes on the disk of the SQLite database.", *free)
	}
	if waited := stats.Database.LockWait; waited != nil {
		send(out, "lock_wait_seconds_total", "Total time that creates waited for other programs' locks on the database.",
			waited.Seconds())
	}
	if wal := stats.Database.WAL; wal != nil {
		send(out, "wal_pages", "Pages in the SQLite WAL file; a page is 4096 bytes.", wal.Pages)
		send(out, "wal_copied_pages", "Pages of the SQLite WAL already copied into the database file.", wal.CopiedPages)
		send(out, "checkpoints_total", "Completed checkpoints of the SQLite WAL.", wal.Checkpoints)
		send(out, "checkpoint_failures_total", "Failed checkpoints of the SQLite WAL.", wal.FailedCheckpoints)
	}
	c.collectExpiry(out)
}

// collectPool does without NewDBStatsCollector of client_golang, because the store does not expose its *sql.DB.
func collectPool(out chan<- prometheus.Metric, stats sql.DBStats, pool string) {
	send(out, "pool_connections_limit", "Maximum number of connections in the pool.", stats.MaxOpenConnections, pool)
	send(out, "pool_connections_in_use", "Number of pool connections in use.", stats.InUse, pool)
	send(out, "pool_connections_idle", "Number of idle pool connections.", stats.Idle, pool)
	send(out, "pool_waits_total", "Number of waits for a connection from the pool.", stats.WaitCount, pool)
	send(out, "pool_wait_seconds_total", "Total time spent waiting for a connection from the pool.",
		stats.WaitDuration.Seconds(), pool)
}

type number interface {
	int | int64 | uint32 | uint64 | float64
}

// send sends a figure: a counter if its name says so, or a gauge. The figure of a pool has a label with its name.
func send[N number](out chan<- prometheus.Metric, name, help string, value N, pool ...string) {
	kind := prometheus.GaugeValue
	if strings.HasSuffix(name, "_total") {
		kind = prometheus.CounterValue
	}
	described := prometheus.NewDesc("providerd_"+name, help, []string{"pool"}[:len(pool)], nil)
	out <- prometheus.MustNewConstMetric(described, kind, float64(value), pool...)
}

func (c *storeCollector) collectExpiry(out chan<- prometheus.Metric) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if time.Since(c.readAt) >= expiryInterval {
		c.readExpiry()
	}
	if c.tokens != nil {
		send(out, "expiring_callers", "Callers whose newest token expires within 14 days, or expired within the last "+
			"14 days.", c.tokens.Callers)
		sendTime(out, "token_expiry_timestamp_seconds", "When the first of the callers will have no valid token. "+
			"Only a caller's newest token counts, and only if its lifetime is longer than 14 days.", c.tokens.First)
	}
	sendTime(out, "key_created_timestamp_seconds", "When the newest data key was created.", c.keyCreated)
}

func (c *storeCollector) readExpiry() {
	ctx, cancel := context.WithTimeout(context.Background(), expiryTimeout)
	defer cancel()
	c.readAt = time.Now()
	c.tokens = nil
	if tokens, err := c.store.Tokens.Expiry(ctx, expiryNotice); err == nil {
		c.tokens = &tokens
	}
	// If they cannot be read, the log and the readiness say why.
	c.keyCreated, _ = c.store.Keys.NewestCreated(ctx)
}

func sendTime(out chan<- prometheus.Metric, name, help string, at time.Time) {
	if !at.IsZero() {
		send(out, name, help, at.Unix())
	}
}
