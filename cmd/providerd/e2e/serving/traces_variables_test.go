package serving_test

import (
	"crypto/tls"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestTracesInvalidVariables sets variables that are invalid, or that make the SDK panic. The server must still create
// records, and report the variable but never its value.
func TestTracesInvalidVariables(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS=canary":        "OpenTelemetry: parse headers",
		"OTEL_EXPORTER_OTLP_HEADERS=a=canary%zz":   "OpenTelemetry: escape header value",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=canary":    "OpenTelemetry: read tls ca cert file",
		"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=canary": "OpenTelemetry: parse duration",
		"OTEL_RESOURCE_ATTRIBUTES=canary":          "OTEL_RESOURCE_ATTRIBUTES has entries that are not NAME=VALUE",
		"OTEL_TRACES_SAMPLER=canary":               "OTEL_TRACES_SAMPLER is not valid",
		"OTEL_BSP_MAX_QUEUE_SIZE=-1":               "",
		"OTEL_BSP_MAX_QUEUE_SIZE=1000000000000":    "",
		"OTEL_BSP_MAX_EXPORT_BATCH_SIZE=0":         "",
		"OTEL_BSP_SCHEDULE_DELAY=0":                "",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			collector, dir := providerdtest.StartCollector(t), t.TempDir()
			server := serveTraced(t, dir, collector.URL, line)
			server.Create(t, contracttest.Client(t))
			server.Stop(t)
			log := server.Stderr.String()
			if !strings.Contains(log, want) || strings.Contains(log, "canary") || len(collector.Bodies()) == 0 {
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
	providerdtest.Check(t, err)
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
