//go:build proof

package neighbors_test

import (
	"os"
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

// buildCollector builds a collector with a receiver for metrics, without the discovery of services in clouds.
const buildCollector = `cat >builder.yaml <<END
dist: {name: otelcol, output_path: built, module: example.com/otelcol, build_tags: remove_all_sd}
receivers:
  - gomod: go.opentelemetry.io/collector/receiver/otlpreceiver $1
  - gomod: github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver v0.165.1
exporters: [{gomod: go.opentelemetry.io/collector/exporter/debugexporter $1}]
END
go run go.opentelemetry.io/collector/cmd/builder@$1 --config builder.yaml`

const collectorConfig = `receivers:
  otlp: {protocols: {http: {endpoint: ENDPOINT}}}
  prometheus:
    config: {scrape_configs: [{job_name: providerd, scrape_interval: 1s, static_configs: [{targets: [OPS]}]}]}
exporters: {debug/counts: {}, debug/values: {verbosity: normal}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [debug/counts]}
    metrics: {receivers: [prometheus], exporters: [debug/values]}
`

// collect freezes, kills and restarts a collector under load. No create may be refused or slow.
func collect(t *testing.T, version string) counts {
	t.Helper()
	bin, dir, endpoint := t.TempDir(), t.TempDir(), processtest.Local(processtest.FreePort(t))
	shell(t, bin, buildCollector, version)
	server := providerdtest.Serve(t, dir, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+endpoint, "--ops-listen", "127.0.0.1:0")
	ops := strings.TrimPrefix(providerdtest.OpsURL(t, server), "http://")
	config := strings.NewReplacer("ENDPOINT", endpoint, "OPS", ops).Replace(collectorConfig)
	processtest.Must(t, os.WriteFile(filepath.Join(bin, "config.yaml"), []byte(config), 0o600))
	run := func() *processtest.Child {
		return launch(t, filepath.Join(bin, "built", "otelcol"), "--config", filepath.Join(bin, "config.yaml"))
	}
	await := func(program *processtest.Child, pattern string) {
		processtest.WaitUntil(t, "the log has "+pattern, func() bool {
			return regexp.MustCompile(pattern).MatchString(program.Stderr.String())
		})
	}
	const spans = `"spans": \d+`
	collector, l := run(), start(t, server)
	await(collector, spans)
	l.WaitForMore(t, 1000)
	processtest.Must(t, collector.Command.Process.Signal(syscall.SIGSTOP))
	await(server.Child, "the collector did not respond in time")
	processtest.Must(t, collector.Command.Process.Signal(syscall.SIGCONT))
	l.WaitForMore(t, 1000)
	processtest.Must(t, collector.Kill())
	await(server.Child, "connection refused")
	collector = run()
	await(collector, spans)
	l.WaitForMore(t, 1000)
	l.Stop()
	// The metrics count each create.
	await(collector, `providerd_requests_total\{.*status=201.*\} `+strconv.Itoa(len(l.Creates))+`\b`)
	server.Stop(t)
	c := l.count(t, providerdtest.Stored(t, dir))
	// An export fails after 10 s.
	slowest := slices.Max(l.slowest[:])
	processtest.Expect(t, slowest <= 5*time.Second && c.refused == 0, "creates: %d refused, %s long", c.refused, slowest)
	return c
}
