package serving_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// unusable returns environments that prevent the export of traces, and the reported reasons. The secrets in them must
// not be reported.
func unusable() map[string]string {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT="
	const (
		isNoURL  = "OTEL_EXPORTER_OTLP_ENDPOINT is not an HTTP URL; set it to one such as http://127.0.0.1:4318\n"
		isSecret = "has a user, a query or a fragment, which would not be sent; remove it, and pass credentials in " +
			"OTEL_EXPORTER_OTLP_HEADERS\n"
	)
	return map[string]string{
		endpoint + "canary:4317":                       isNoURL,
		endpoint + "grpc://canary:4317":                isNoURL,
		endpoint + "http://":                           isNoURL,
		endpoint + "http://user:canary@%zz":            isNoURL,
		endpoint + "http://user:canary@127.0.0.1:4318": "OTEL_EXPORTER_OTLP_ENDPOINT " + isSecret,
		endpoint + "http://127.0.0.1:4318/?key=canary": "OTEL_EXPORTER_OTLP_ENDPOINT " + isSecret,
		endpoint + "http://127.0.0.1:4318/canary?":     "OTEL_EXPORTER_OTLP_ENDPOINT " + isSecret,
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=canary":    strings.Replace(isNoURL, "OTLP", "OTLP_TRACES", 1),
	}
}

// TestTracesUnusableEndpoint checks that the doctor reports an unusable endpoint, and that the server runs without
// traces.
func TestTracesUnusableEndpoint(t *testing.T) {
	t.Parallel()
	// The names of subtests, and so their directories, contain the secret.
	empty := t.TempDir()
	for environment, want := range unusable() {
		t.Run(environment, func(t *testing.T) {
			t.Parallel()
			output, _ := providerdtest.Command(t.Context(), empty, environment, "doctor").CombinedOutput()
			if found := string(output); !strings.Contains(found, "traces are not exported: "+want) || strings.Contains(found, "canary") {
				t.Errorf("the doctor reports %s", found)
			}
		})
	}
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir, "OTEL_EXPORTER_OTLP_ENDPOINT=http://user:canary@127.0.0.1:4318")
	server.Create(t, contracttest.Client(t))
	server.Stop(t)
	const want = "warning: traces are not exported: OTEL_EXPORTER_OTLP_ENDPOINT has a user, a query or a fragment"
	if log := server.Stderr.String(); !strings.Contains(log, want) || strings.Contains(log, "canary") {
		t.Errorf("the log is %s", log)
	}
}

// errorsOfTraces returns the errors of failed exports in a JSON log.
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

// failingCollectors returns the errors that the server logs and the URLs of collectors that accept no spans. Their
// responses contain the key and the path of the request.
func failingCollectors(t *testing.T) [][2]string {
	t.Helper()
	elsewhere := providerdtest.StartCollectorFunc(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host got the key %s", r.Header.Get("Api-Key"))
	})
	echo := func(r *http.Request) string { return "bad key " + r.Header.Get("Api-Key") + " for " + r.URL.Path }
	respond := func(t *testing.T, w http.ResponseWriter, text string) {
		t.Helper()
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = connection.Write([]byte(text))
		_ = connection.Close()
	}
	const isNotOTLP = "the collector does not accept the spans; it must speak OTLP over HTTP, usually on port 4318"
	return [][2]string{
		{"connect: connection refused", "http://127.0.0.1:1"},
		{"the collector responded with 403 Forbidden", providerdtest.StartCollectorFunc(t, func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, strings.Repeat(echo(r), 1_000), http.StatusForbidden)
		})},
		{"the collector responded with 404 Not Found", providerdtest.StartCollectorFunc(t, func(w http.ResponseWriter, r *http.Request) {
			respond(t, w, "HTTP/1.1 404 "+echo(r)+"\r\nConnection: close\r\n\r\n"+echo(r))
		})},
		{isNotOTLP, providerdtest.StartCollectorFunc(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "3600")
			http.Error(w, echo(r), http.StatusServiceUnavailable)
		})},
		{isNotOTLP, providerdtest.StartCollectorFunc(t, func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, strings.Repeat(echo(r), 10_000), http.StatusForbidden)
		})},
		{"the collector sent a redirect, which is not followed; set the endpoint to the final URL", providerdtest.StartCollectorFunc(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
		})},
		{isNotOTLP, providerdtest.StartCollectorFunc(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"partialSuccess":{"rejectedSpans":"1","errorMessage":%q}}`, echo(r))
		})},
		{isNotOTLP, providerdtest.StartCollectorFunc(t, func(w http.ResponseWriter, r *http.Request) {
			respond(t, w, echo(r)+"\r\n\r\n")
		})},
		{"the collector did not respond in time", providerdtest.StartCollectorFunc(t, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		})},
	}
}

// firstErrors is how many errors are logged before the limit of one per minute applies.
const firstErrors = 3

// TestTracesFailingCollector creates records while the collector fails. Creates must not be delayed, and the log must
// have few errors, without the path and the header of the collector, which may be secret.
func TestTracesFailingCollector(t *testing.T) {
	t.Parallel()
	for _, collector := range failingCollectors(t) {
		want, url := collector[0], collector[1]
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			dir, started := t.TempDir(), time.Now()
			server := serveTraced(t, dir, url+"/%63anary", "OTEL_BSP_SCHEDULE_DELAY=1",
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
			if len(lines) > firstErrors+int(time.Since(started).Minutes()) {
				t.Errorf("the log has %d errors", len(lines))
			}
			if !strings.Contains(lines[0], want) || len(lines[0]) > 512+len("…") {
				t.Errorf("the log has %q", lines[0])
			}
			if strings.Contains(log, "canary") || strings.Contains(log, "%63anary") {
				t.Errorf("the log has the path or the key of the collector: %q", lines)
			}
		})
	}
}

// TestTracesHangingCollector exports more spans than the queue holds to a collector that never responds, and checks
// that the server does not wait for it for long when it stops.
func TestTracesHangingCollector(t *testing.T) {
	t.Parallel()
	hanging, err := net.Listen("tcp", "127.0.0.1:0")
	processtest.Must(t, err)
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
	if log := server.Stderr.String(); !strings.Contains(log, "cannot export last traces") {
		t.Errorf("the log is %s", log)
	}
}
