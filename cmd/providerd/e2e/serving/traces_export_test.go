package serving_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
			isWanted := isExported == (want != off && want != "trace_id")
			processtest.Expect(t, isSaid && isWanted && !strings.Contains(log, "canary"),
				"the collector got %d requests, and the log is %s", len(collector.Bodies()), log)
		})
	}
}

// TestTracesOverHTTPS exports to a collector that requires a client certificate.
func TestTracesOverHTTPS(t *testing.T) {
	t.Parallel()
	dir, received := t.TempDir(), &providerdtest.Collector{}
	providerdtest.WriteCertificate(t, dir, 1)
	certificate, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pair := processtest.Try(tls.LoadX509KeyPair(certificate, key)).Must(t)
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

// TestTracesUnusableEndpoint checks that doctor reports an unusable endpoint without secrets, and that the server runs.
func TestTracesUnusableEndpoint(t *testing.T) {
	t.Parallel()
	const (
		endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT="
		isNoURL  = "OTEL_EXPORTER_OTLP_ENDPOINT is not an HTTP URL; set it to one such as http://127.0.0.1:4318\n"
		isSecret = "OTEL_EXPORTER_OTLP_ENDPOINT has a user, a query or a fragment, which would not be sent; remove it, and " +
			"pass credentials in OTEL_EXPORTER_OTLP_HEADERS\n"
	)
	// The names of subtests, and so their directories, contain the secret.
	empty := t.TempDir()
	for environment, want := range map[string]string{
		endpoint + "canary:4317":                       isNoURL,
		endpoint + "grpc://canary:4317":                isNoURL,
		endpoint + "http://":                           isNoURL,
		endpoint + "http://user:canary@%zz":            isNoURL,
		endpoint + "http://user:canary@127.0.0.1:4318": isSecret,
		endpoint + "http://127.0.0.1:4318/?key=canary": isSecret,
		endpoint + "http://127.0.0.1:4318/canary?":     isSecret,
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=canary":    strings.Replace(isNoURL, "OTLP", "OTLP_TRACES", 1),
	} {
		t.Run(environment, func(t *testing.T) {
			t.Parallel()
			output, _ := providerdtest.Command(t.Context(), empty, environment, "doctor").CombinedOutput()
			if found := string(output); !strings.Contains(found, "traces are not exported: "+want) || strings.Contains(found, "canary") {
				t.Errorf("the doctor reports %s", found)
			}
		})
	}
	server := providerdtest.Serve(t, t.TempDir(), endpoint+"http://user:canary@127.0.0.1:4318")
	server.Create(t, contracttest.Client(t))
	server.Stop(t)
	const want = "warning: traces are not exported: OTEL_EXPORTER_OTLP_ENDPOINT has a user, a query or a fragment"
	log := server.Stderr.String()
	processtest.Expect(t, strings.Contains(log, want) && !strings.Contains(log, "canary"), "the log is %s", log)
}

func errorsOfTraces(t *testing.T, log string) []string {
	t.Helper()
	var lines []string
	for _, fields := range logLines(t, log) {
		if fields["msg"] == "trace export failed" {
			lines = append(lines, fields["error"].(string))
		}
	}
	return lines
}

// TestTracesFailingCollector creates records while the collector fails. Creates must not be delayed, and the log must
// have few errors, without the path and the header of the collector, which may be secret and are in its responses.
func TestTracesFailingCollector(t *testing.T) {
	t.Parallel()
	// So many errors are logged before the limit of one per minute applies.
	const firstErrors = 3
	elsewhere := providerdtest.StartCollectorFunc(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host got the key %s", r.Header.Get("Api-Key"))
	})
	echo := func(r *http.Request) string { return "bad key " + r.Header.Get("Api-Key") + " for " + r.URL.Path }
	write := func(w http.ResponseWriter, text string) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = connection.Write([]byte(text))
		_ = connection.Close()
	}
	const isNotOTLP = "the collector does not accept the spans; it must speak OTLP over HTTP, usually on port 4318"
	for _, collector := range []struct {
		want    string
		respond http.HandlerFunc
	}{
		{"connect: connection refused", nil},
		{"the collector responded with 403 Forbidden", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, strings.Repeat(echo(r), 1_000), http.StatusForbidden)
		}},
		{"the collector responded with 404 Not Found", func(w http.ResponseWriter, r *http.Request) {
			write(w, "HTTP/1.1 404 "+echo(r)+"\r\nConnection: close\r\n\r\n"+echo(r))
		}},
		{isNotOTLP, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "3600")
			http.Error(w, echo(r), http.StatusServiceUnavailable)
		}},
		{isNotOTLP, func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, strings.Repeat(echo(r), 10_000), http.StatusForbidden)
		}},
		{"the collector sent a redirect, which is not followed; set the endpoint to the final URL", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
		}},
		{isNotOTLP, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"partialSuccess":{"rejectedSpans":"1","errorMessage":%q}}`, echo(r))
		}},
		{isNotOTLP, func(w http.ResponseWriter, r *http.Request) { write(w, echo(r)+"\r\n\r\n") }},
		{"the collector did not respond in time", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	} {
		t.Run(collector.want, func(t *testing.T) {
			t.Parallel()
			started, url := time.Now(), "http://127.0.0.1:1"
			if collector.respond != nil {
				url = providerdtest.StartCollectorFunc(t, collector.respond)
			}
			server := serveTraced(t, t.TempDir(), url+"/%63anary", "OTEL_BSP_SCHEDULE_DELAY=1",
				"OTEL_EXPORTER_OTLP_HEADERS=api-key=canary")
			processtest.WaitUntil(t, "the export fails several times", func() bool {
				server.Create(t, contracttest.Client(t))
				return len(errorsOfTraces(t, server.Stderr.String())) >= firstErrors
			})
			for range 50 {
				server.Create(t, contracttest.Client(t))
			}
			server.Stop(t)
			log := server.Stderr.String()
			lines := errorsOfTraces(t, log)
			processtest.Expect(t, len(lines) <= firstErrors+int(time.Since(started).Minutes()),
				"%d errors are logged", len(lines))
			if !strings.Contains(lines[0], collector.want) || len(lines[0]) > 512+len("…") {
				t.Errorf("the log has %q", lines[0])
			}
			processtest.Expect(t, !strings.Contains(log, "canary") && !strings.Contains(log, "%63anary"),
				"the log has the path or the key of the collector: %q", lines)
		})
	}
}

// TestTracesHangingCollector fills the queue for a collector that never responds, which must not delay a stop for long.
func TestTracesHangingCollector(t *testing.T) {
	t.Parallel()
	hanging := processtest.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	t.Cleanup(func() { _ = hanging.Close() })
	const forever = 3_600_000
	dir := t.TempDir()
	server := serveTraced(t, dir, "http://"+hanging.Addr().String(), "OTEL_BSP_SCHEDULE_DELAY=1",
		"OTEL_BSP_MAX_QUEUE_SIZE=8", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=4",
		fmt.Sprintf("OTEL_BSP_EXPORT_TIMEOUT=%d", forever), fmt.Sprintf("OTEL_EXPORTER_OTLP_TIMEOUT=%d", forever))
	for range 50 {
		server.Create(t, contracttest.Client(t))
	}
	server.Stop(t)
	processtest.Contains(t, server.Stderr.String(), "cannot export last traces")
}
