package server_test

import (
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"example.com/providerd/server"
	"example.com/providerd/store/storetest/processtest"
)

func TestRequestID(t *testing.T) {
	h := startParallel(t)
	for _, id := range []string{"a", "3NQ5ZB7W-1.2_3~4+5/6=:", strings.Repeat("x", 128)} {
		got := h.send(t, http.MethodGet, "/healthz", nil, set("X-Request-Id", id))
		processtest.Equal(t, got.header.Get("X-Request-Id"), id, "id")
	}
	seen := map[string]bool{}
	for _, ids := range [][]string{nil, {""}, {"a b"}, {"ü"}, {strings.Repeat("x", 129)}, {"a", "b"}, {`"a"`}} {
		got := h.send(t, http.MethodGet, "/healthz", nil, set("X-Request-Id", ids...)).header.Get("X-Request-Id")
		processtest.Expect(t, len(got) >= 16 && !seen[got], "for %q id is %q", ids, got)
		seen[got] = true
	}
}

// Values that a caller chooses are truncated in the log.
func TestOneLogLineForEachExchange(t *testing.T) {
	h := startParallel(t)
	body := minimal(oauth2Path)
	body["client_secret"] = "canary-secret"
	h.post(t, oauth2Path, encode(t, body), set("X-Request-Id", "id-1")).record(t)
	h.post(t, oauth2Path+"?access_token=canary-query", encode(t, body)).problem(t, 400, "invalid-parameter")
	h.post(t, oauth2Path+"pvd_canary", encode(t, body)).problem(t, 404, "not-found")
	h.post(t, oauth2Path+"?validate_only=true", encode(t, body))
	for _, path := range []string{"/healthz", "/readyz", "/", "/openapi.yaml"} {
		h.send(t, http.MethodGet, path, nil)
	}
	body["sub_mode"] = "canary-value"
	h.post(t, oauth2Path, encode(t, body), set("X-Request-Id", "id-2")).problem(t, 400, "validation-failed")
	long := strings.Repeat("x", 20_000)
	h.send(t, strings.Repeat("M", 5_000), "/"+long, nil).problem(t, 404, "not-found")
	lines := strings.Split(strings.TrimSpace(h.log.String()), "\n")
	processtest.Require(t, len(lines) == 6, "%d lines: %s", len(lines), h.log)
	for i, want := range []map[string]any{
		{"request_id": "id-1", "method": "POST", "path": oauth2Path, "status": 201.0, "caller": "test", "validate_only": nil},
		{"level": "INFO", "path": oauth2Path, "status": 400.0, "problem": "invalid-parameter", "validate_only": nil},
		{"path": oauth2Path + "pvd_…", "status": 404.0},
		{"level": "INFO", "path": oauth2Path, "status": 200.0, "caller": "test", "validate_only": true},
		{"level": "INFO", "request_id": "id-2", "status": 400.0, "caller": "test", "problem": "validation-failed"},
		{"status": 404.0, "path": "/" + long[:255] + "…", "method": strings.Repeat("M", 256) + "…"},
	} {
		var line map[string]any
		processtest.Must(t, json.Unmarshal([]byte(lines[i]), &line))
		for name, value := range want {
			processtest.Equal(t, line[name], value, "line %d: %s", i, name)
		}
		if took, ok := line["duration_ms"].(float64); !ok || took <= 0 || line["duration"] != nil {
			t.Errorf("line %d: duration is %v and %v ms", i, line["duration"], line["duration_ms"])
		}
	}
	processtest.Expect(t, !strings.Contains(h.log.String(), "canary") && !strings.Contains(h.log.String(), h.token),
		"the log has a value: %s", h.log)
}

// At level error, the log contains only the requests that the server failed, here because it panics.
func TestPanicIsAnsweredAndLogged(t *testing.T) {
	h := startParallel(t)
	logger := slog.New(slog.NewJSONHandler(h.log, &slog.HandlerOptions{Level: slog.LevelError}))
	h.serve(t, func(config *server.Config) { config.Logger = logger })
	h.post(t, oauth2Path, encode(t, minimal(oauth2Path))).record(t)
	processtest.Equal(t, h.log.String(), "", "log of a create")
	h.serve(t, func(config *server.Config) { config.Store, config.Logger = nil, logger })
	got := h.post(t, oauth2Path, encode(t, minimal(oauth2Path)))
	problem := got.problem(t, http.StatusInternalServerError, "internal")
	lines := h.log.String()
	processtest.Expect(t, strings.Count(lines, "\n") == 1 && strings.Contains(lines, problem.RequestID) &&
		strings.Contains(lines, "panic: "), "the log has no panic under %s: %s", problem.RequestID, lines)
	processtest.Expect(t, !strings.Contains(string(got.body), "nil pointer"), "the answer has the cause: %s", got.body)
}

// The span of a request within TLS has its scheme.
func TestSpansHaveTheScheme(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	traces := server.NewTraces(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))
	newTarget(t, func(config *server.Config) { config.Traces = traces }).
		post(oauth2Path, "{}", func(request *http.Request) { request.TLS = &tls.ConnectionState{} })
	spans := exporter.GetSpans()
	processtest.Expect(t, len(spans) == 2 && slices.Contains(spans[1].Attributes, attribute.String("url.scheme", "https")),
		"the spans are %+v", spans)
}

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
	families := processtest.Try(registry.Gather()).Must(t)
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
