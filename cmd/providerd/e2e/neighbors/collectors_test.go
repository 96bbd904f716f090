//go:build proof

package neighbors_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

func collectors() []neighbor {
	const version = "v0.165.0"
	return []neighbor{{
		"OpenTelemetry Collector", "traces and scraped metrics; frozen, killed, restarted",
		"Creates never wait; spans are lost while it is away.", func(t *testing.T) (string, counts) {
			dir := t.TempDir()
			install(t, dir, strings.ReplaceAll(buildCollector, "VERSION", version))
			return version, collect(t, filepath.Join(dir, "built", "otelcol"))
		},
	}}
}

// buildCollector builds a collector with a receiver for metrics, without the discovery of services in clouds.
const buildCollector = `cat >builder.yaml <<END
dist: {name: otelcol, output_path: built, module: example.com/otelcol, build_tags: remove_all_sd}
receivers:
  - gomod: go.opentelemetry.io/collector/receiver/otlpreceiver VERSION
  - gomod: github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver v0.165.1
exporters: [{gomod: go.opentelemetry.io/collector/exporter/debugexporter VERSION}]
END
go run go.opentelemetry.io/collector/cmd/builder@VERSION --config builder.yaml`

const collectorConfig = `receivers:
  otlp: {protocols: {http: {endpoint: ENDPOINT}}}
  prometheus: {config: {scrape_configs: [{job_name: providerd, scrape_interval: 1s, static_configs: [{targets: [OPS]}]}]}}
exporters: {debug/counts: {}, debug/values: {verbosity: normal}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [debug/counts]}
    metrics: {receivers: [prometheus], exporters: [debug/values]}
`

// collect freezes, kills and restarts a collector under load. No create may be refused or slow.
func collect(t *testing.T, program string) counts {
	t.Helper()
	dir, endpoint := t.TempDir(), processtest.Local(processtest.FreePort(t))
	server := providerdtest.Serve(t, dir, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+endpoint, "--ops-listen", "127.0.0.1:0")
	ops := strings.TrimPrefix(providerdtest.OpsURL(t, server), "http://")
	config := write(t, "config.yaml", strings.NewReplacer("ENDPOINT", endpoint, "OPS", ops).Replace(collectorConfig))
	run := func() *processtest.Child { return launch(t, program, "--config", config) }
	collector := run()
	has := func(pattern string) func() bool {
		return func() bool { return regexp.MustCompile(pattern).MatchString(collector.Stderr.String()) }
	}
	isLogged := func(text string) func() bool {
		return func() bool { return strings.Contains(server.Stderr.String(), text) }
	}
	const spans = `"spans": \d+`
	l := start(t, to(server))
	processtest.WaitUntil(t, "spans arrive", has(spans))
	l.WaitForMore(t, 1000)
	processtest.Must(t, collector.Command.Process.Signal(syscall.SIGSTOP))
	processtest.WaitUntil(t, "an export to the frozen collector fails", isLogged("the collector did not respond in time"))
	processtest.Must(t, collector.Command.Process.Signal(syscall.SIGCONT))
	l.WaitForMore(t, 1000)
	processtest.Must(t, collector.Kill())
	processtest.WaitUntil(t, "an export to the killed collector fails", isLogged("connection refused"))
	collector = run()
	processtest.WaitUntil(t, "spans arrive again", has(spans))
	l.WaitForMore(t, 1000)
	l.Stop()
	processtest.WaitUntil(t, "the metrics count each create", has(`providerd_requests_total\{.*status=201.*\} `+strconv.Itoa(len(l.Creates))+`\b`))
	server.Stop(t)
	c := l.count(t, providerdtest.Stored(t, dir))
	// An export fails after 10 s.
	if slowest := slices.Max(l.slowest[:]); slowest > 5*time.Second || c.refused > 0 {
		t.Errorf("a create took %s, and %d were refused", slowest, c.refused)
	}
	return c
}
