package server

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// otherOperation stands for whatever a request is for that is no operation: the pages, and what does not exist.
const otherOperation = "other"

// Metrics counts what a server answers. The values of labels are this program's own; what a caller sends is none.
type Metrics struct {
	registry      prometheus.Registerer
	requests      *prometheus.CounterVec
	durations     *prometheus.HistogramVec
	problems      *prometheus.CounterVec
	violations    *prometheus.CounterVec
	replays       *prometheus.CounterVec
	tokenRefusals *prometheus.CounterVec
	limited       *prometheus.CounterVec
}

// NewMetrics makes the metrics of the one server of a contract and a store, and those of the store itself. They are
// read from the registry, where everything begins with 0 but requests, whose statuses are many. It panics where the
// registry has them already, as New does where the metrics have a server.
func NewMetrics(registry prometheus.Registerer, openapi *contract.Document, database *store.Store) *Metrics {
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return promauto.With(registry).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	metrics := &Metrics{
		registry: registry,
		requests: counters("providerd_requests_total",
			"Requests that were answered, by operation and status.", "operation", "status"),
		durations: promauto.With(registry).NewHistogramVec(prometheus.HistogramOpts{
			Name:    "providerd_request_duration_seconds",
			Help:    "How long requests took, from the header to the end of the answer.",
			Buckets: secondsBuckets(),
		}, []string{"operation"}),
		problems:   counters("providerd_problems_total", "Problems that were answered, by type.", "type"),
		violations: counters("providerd_violations_total", "Violations that answers have listed, by code.", "code"),
		replays: counters("providerd_replays_total",
			"Creates that were answered with the record which their idempotency key had made.", "operation"),
		tokenRefusals: counters("providerd_token_refusals_total",
			"Requests whose token was refused, by reason.", "reason"),
		limited: counters("providerd_rate_limited_total",
			"Requests that were refused because their caller sent more than --rate-limit allows.", "operation"),
	}
	metrics.begin(openapi)
	watchStore(registry, database)
	return metrics
}

// secondsBuckets lie around a create on a fast disk, and end where a request does.
func secondsBuckets() []float64 {
	return []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
}

// begin sets what can be counted to 0: a rate is only of what was there before.
func (m *Metrics) begin(openapi *contract.Document) {
	for _, operation := range append(openapi.OperationIDs(), otherOperation) {
		m.durations.WithLabelValues(operation)
	}
	for _, operation := range openapi.OperationIDs() {
		m.replays.WithLabelValues(operation)
		m.limited.WithLabelValues(operation)
	}
	for _, kind := range problemKinds() {
		m.problems.WithLabelValues(string(kind.Slug))
	}
	for _, code := range openapi.ViolationCodes() {
		m.violations.WithLabelValues(code)
	}
	for _, reason := range []tokenRefusal{
		tokenMissing, tokenMistyped, tokenUnknown, tokenExpired, tokenRevoked, tokenForbidden,
	} {
		m.tokenRefusals.WithLabelValues(string(reason))
	}
}

// count counts an exchange that was answered. Metrics that are nil count nothing.
func (m *Metrics) count(answered *exchange, status int) {
	if m == nil {
		return
	}
	operation := answered.operation
	if operation == "" {
		operation = otherOperation
	}
	m.requests.WithLabelValues(operation, strconv.Itoa(status)).Inc()
	m.durations.WithLabelValues(operation).Observe(answered.took.Seconds())
	if answered.replayed {
		m.replays.WithLabelValues(operation).Inc()
	}
	if answered.refused != nil {
		m.countRefusal(answered.refused, operation)
	}
}

func (m *Metrics) countRefusal(refused *refusal, operation string) {
	m.problems.WithLabelValues(string(refused.slug)).Inc()
	for _, one := range refused.violations {
		m.violations.WithLabelValues(string(one.Code)).Inc()
	}
	if refused.token != "" {
		m.tokenRefusals.WithLabelValues(string(refused.token)).Inc()
	}
	if refused.isLimited {
		m.limited.WithLabelValues(operation).Inc()
	}
}
