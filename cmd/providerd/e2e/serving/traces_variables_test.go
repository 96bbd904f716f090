package serving_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestTracesVariables sets variables that turn traces off, that are invalid, or that make the SDK panic. The server must
// still create records, and report an invalid variable but never its value.
func TestTracesVariables(t *testing.T) {
	t.Parallel()
	const off = "off"
	for line, want := range map[string]string{
		"":                          off,
		"OTEL_SDK_DISABLED=True":    off,
		"OTEL_TRACES_EXPORTER=none": off,
		// A client cannot enable traces that the operator has disabled.
		"OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=0": "trace_id",

		"OTEL_EXPORTER_OTLP_HEADERS=canary":        "OpenTelemetry: parse headers",
		"OTEL_EXPORTER_OTLP_HEADERS=a=canary%zz":   "OpenTelemetry: escape header value",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=canary":    "OpenTelemetry: read tls ca cert file",
		"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=canary": "OpenTelemetry: parse duration",
		"OTEL_RESOURCE_ATTRIBUTES=canary":          "OTEL_RESOURCE_ATTRIBUTES has entries not of the form NAME=VALUE",
		"OTEL_TRACES_SAMPLER=canary":               "OTEL_TRACES_SAMPLER is not valid",
		"OTEL_BSP_MAX_QUEUE_SIZE=-1":               "",
		"OTEL_BSP_MAX_QUEUE_SIZE=1000000000000":    "",
		"OTEL_BSP_MAX_EXPORT_BATCH_SIZE=0":         "",
		"OTEL_BSP_SCHEDULE_DELAY=0":                "",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			collector, dir := providerdtest.StartCollector(t), t.TempDir()
			words := append(strings.Fields(line), "--log-format", "json")
			if line != "" {
				words = append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL}, words...)
			}
			server := providerdtest.Serve(t, dir, words...)
			tracedCall{
				name: "x", method: http.MethodPost, path: providerdtest.OAuth2Path, token: providerdtest.Token(t, dir),
				body: providerdtest.OAuth2Body, traceparent: []string{traceparent}, status: http.StatusCreated,
			}.send(t, server)
			server.Stop(t)
			log, isExported := server.Stderr.String(), len(collector.Bodies()) > 0
			isSaid := strings.Contains(log, want)
			if want == off {
				isSaid = !strings.Contains(log, "trace")
			}
			if !isSaid || strings.Contains(log, "canary") || isExported != (want != off && want != "trace_id") {
				t.Errorf("the collector got %d requests, and the log is %s", len(collector.Bodies()), log)
			}
		})
	}
}

// TestTracesOverHTTPS exports to a collector that requires a client certificate.
func TestTracesOverHTTPS(t *testing.T) {
	t.Parallel()
	dir, received := t.TempDir(), &providerdtest.Collector{}
	providerdtest.WriteCertificate(t, dir, 1)
	certificate, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pair, err := tls.LoadX509KeyPair(certificate, key)
	processtest.Must(t, err)
	listener := httptest.NewUnstartedServer(received)
	listener.TLS = &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: providerdtest.CertPool(t, dir), ClientAuth: tls.RequireAndVerifyClientCert,
	}
	listener.StartTLS()
	t.Cleanup(listener.Close)
	environment := []string{"OTEL_BSP_SCHEDULE_DELAY=1"}
	for name, value := range map[string]string{
		"CERTIFICATE": certificate, "CLIENT_CERTIFICATE": certificate, "CLIENT_KEY": key,
		"COMPRESSION": "gzip", "HEADERS": "a=b", "PROTOCOL": "http/protobuf", "TIMEOUT": "60000",
	} {
		environment = append(environment, "OTEL_EXPORTER_OTLP_"+name+"="+value)
	}
	server := serveTraced(t, dir, listener.URL, environment...)
	server.Create(t, contracttest.Client(t))
	server.Stop(t)
	if log := server.Stderr.String(); len(received.Bodies()) == 0 || strings.Contains(log, "WARN") {
		t.Errorf("the collector got %d requests, and the log is %s", len(received.Bodies()), log)
	}
	dir = t.TempDir()
	server = serveTraced(t, dir, listener.URL, "OTEL_BSP_SCHEDULE_DELAY=1")
	processtest.WaitUntil(t, "a collector that is not trusted is not sent to", func() bool {
		server.Create(t, contracttest.Client(t))
		return strings.Contains(server.Stderr.String(), "failed to verify certificate")
	})
}
