package serving_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
)

// TestTracesThatAreOff starts a server that is not to send any, and finds that none is sent.
func TestTracesThatAreOff(t *testing.T) {
	t.Parallel()
	for name, environment := range map[string][]string{
		"nothing is set":     nil,
		"the SDK is off":     {"OTEL_SDK_DISABLED=True"},
		"there is no export": {"OTEL_TRACES_EXPORTER=none"},
		// Where the operator wants fewer traces, no caller gets more.
		"nothing is sampled": {"OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			collector, folder := providerdtest.StartCollector(t), t.TempDir()
			if environment != nil {
				environment = append(environment, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL)
			}
			server := providerdtest.ServeWith(t, folder, environment)
			tracedCall{
				name: "x", method: http.MethodPost, path: providerdtest.OAuth2Path, token: providerdtest.CreateToken(t, folder, "x"), body: providerdtest.OAuth2Body,
				traceparent: []string{traceparent}, status: http.StatusCreated,
			}.send(t, server)
			server.MustStop(t)
			isTracing := name == "nothing is sampled"
			if log := server.Stderr.String(); collector.RequestCount() > 0 || strings.Contains(log, "trace") != isTracing {
				t.Errorf("the collector got %d requests, and the server says %s", collector.RequestCount(), log)
			}
		})
	}
}

// unusable are environments over which no traces can be exported, and what is said of them. They may have a secret,
// which is not.
func unusable() map[string]string {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT="
	const isNoURL, isSecret = "OTEL_EXPORTER_OTLP_ENDPOINT is not an HTTP URL; set it to one", "has a user, a query or a fragment"
	return map[string]string{
		endpoint + "canary:4317":                                        isNoURL,
		endpoint + "localhost:4318":                                     isNoURL,
		endpoint + "http://":                                            isNoURL,
		endpoint + "unix:///canary":                                     isNoURL,
		endpoint + "http://user:canary@%zz":                             isNoURL,
		endpoint + "http://user:canary@127.0.0.1:4318":                  "OTEL_EXPORTER_OTLP_ENDPOINT " + isSecret,
		endpoint + "http://127.0.0.1:4318/?key=canary":                  "OTEL_EXPORTER_OTLP_ENDPOINT " + isSecret,
		endpoint + "http://127.0.0.1:4318/canary?":                      "OTEL_EXPORTER_OTLP_ENDPOINT " + isSecret,
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=canary":                     "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not an HTTP URL",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://user:canary@x:4318/": "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT " + isSecret,
	}
}

// Whoever looks for what is wrong is told, and the server goes on without traces.
func TestTracesThatCannotBeExported(t *testing.T) {
	t.Parallel()
	for environment, want := range unusable() {
		t.Run(environment, func(t *testing.T) {
			t.Parallel()
			command := providerdtest.Command(t.Context(), t.TempDir(), "doctor")
			command.Env = append(os.Environ(), strings.Fields(environment)...)
			output, _ := command.CombinedOutput()
			if found := string(output); !strings.Contains(found, "traces are not exported: "+want) || strings.Contains(found, "canary") {
				t.Errorf("the doctor says %s", found)
			}
		})
	}
	folder := t.TempDir()
	server := providerdtest.ServeWith(t, folder,
		[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://user:canary@127.0.0.1:4318"})
	server.Create(t, contracttest.Client(t))
	server.MustStop(t)
	const want = "warning: traces are not exported: OTEL_EXPORTER_OTLP_ENDPOINT has a user, a query or a fragment"
	if log := server.Stderr.String(); !strings.Contains(log, want) || strings.Contains(log, "canary") {
		t.Errorf("the server says %s", log)
	}
}

// errorsOfTraces returns what the lines of a log for programs say of a failed export.
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

// failingCollectors are collectors that take no spans, and what is said of them. What they answer has the key, and the
// path, that they were sent.
func failingCollectors(t *testing.T) map[string]string {
	t.Helper()
	elsewhere := providerdtest.StartCollectorFunc(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host gets the key %s", r.Header.Get("Api-Key"))
	})
	echo := func(r *http.Request) string { return "bad key " + r.Header.Get("Api-Key") + " for " + r.URL.Path }
	answer := func(t *testing.T, w http.ResponseWriter, text string) {
		t.Helper()
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = connection.Write([]byte(text))
		_ = connection.Close()
	}
	return map[string]string{
		"connect: connection refused": "http://127.0.0.1:1",
		"the collector responded with 403 Forbidden": providerdtest.StartCollectorFunc(t, func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, strings.Repeat(echo(r), 1_000), http.StatusForbidden)
		}),
		"the collector responded with 404 Not Found": providerdtest.StartCollectorFunc(t, func(w http.ResponseWriter, r *http.Request) {
			answer(t, w, "HTTP/1.1 404 "+echo(r)+"\r\nConnection: close\r\n\r\n"+echo(r))
		}),
		"(429, 502, 503 or 504)": providerdtest.StartCollectorFunc(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "3600")
			http.Error(w, echo(r), http.StatusServiceUnavailable)
		}),
		"the collector's response is too large": providerdtest.StartCollectorFunc(t, func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, strings.Repeat(echo(r), 10_000), http.StatusForbidden)
		}),
		"the collector redirects; redirects are not followed": providerdtest.StartCollectorFunc(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
		}),
		"the collector rejected some of the spans": providerdtest.StartCollectorFunc(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"partialSuccess":{"rejectedSpans":"1","errorMessage":%q}}`, echo(r))
		}),
		"the collector does not respond with OTLP over HTTP": providerdtest.StartCollectorFunc(t, func(w http.ResponseWriter, r *http.Request) {
			answer(t, w, echo(r)+"\r\n\r\n")
		}),
		"the collector closed the connection": providerdtest.StartCollectorFunc(t, func(w http.ResponseWriter, _ *http.Request) {
			answer(t, w, "")
		}),
	}
}

// firstErrors are logged before it is one in a minute.
const firstErrors = 3

// TestTracesWithoutCollector creates while the collector is away, refuses all, or sends elsewhere. None of it is held
// back, and little is said of it, without the path and the header of the collector, which may be a key.
func TestTracesWithoutCollector(t *testing.T) {
	t.Parallel()
	for want, url := range failingCollectors(t) {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			folder, begun := t.TempDir(), time.Now()
			server := serveTraced(t, folder, url+"/%63anary", "OTEL_BSP_SCHEDULE_DELAY=1",
				"OTEL_EXPORTER_OTLP_HEADERS=api-key=canary")
			providerdtest.WaitUntil(t, "the export fails several times", func() bool {
				server.Create(t, contracttest.Client(t))
				return len(errorsOfTraces(t, server.Stderr.String())) >= firstErrors
			})
			for range 50 {
				server.Create(t, contracttest.Client(t))
			}
			server.MustStop(t)
			log := server.Stderr.String()
			lines := errorsOfTraces(t, log)
			if len(lines) > firstErrors+int(time.Since(begun).Minutes()) {
				t.Errorf("there are %d lines", len(lines))
			}
			if !strings.Contains(lines[0], want) || len(lines[0]) > 512+len("…") {
				t.Errorf("the server says %q", lines[0])
			}
			if strings.Contains(log, "canary") || strings.Contains(log, "%63anary") {
				t.Errorf("the path of the collector, or its key, is in %q", lines)
			}
		})
	}
}

// TestTracesOfHangingCollector creates more than may wait for a collector that takes connections and never answers, and
// ends the server, which then has waited for it long enough.
func TestTracesOfHangingCollector(t *testing.T) {
	t.Parallel()
	hanging, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hanging.Close() })
	const forever = 3_600_000
	folder := t.TempDir()
	server := serveTraced(t, folder, "http://"+hanging.Addr().String(), "OTEL_BSP_SCHEDULE_DELAY=1",
		"OTEL_BSP_MAX_QUEUE_SIZE=8", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=4",
		fmt.Sprintf("OTEL_BSP_EXPORT_TIMEOUT=%d", forever), fmt.Sprintf("OTEL_EXPORTER_OTLP_TIMEOUT=%d", forever))
	for range 50 {
		server.Create(t, contracttest.Client(t))
	}
	server.MustStop(t)
	if log := server.Stderr.String(); !strings.Contains(log, "cannot export last traces") {
		t.Errorf("the server says %s", log)
	}
}

// Whoever looks why there are no traces is told that the collector takes too long.
func TestTracesOfSlowCollector(t *testing.T) {
	t.Parallel()
	slow := providerdtest.StartCollectorFunc(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	folder := t.TempDir()
	server := serveTraced(t, folder, slow, "OTEL_BSP_SCHEDULE_DELAY=1", "OTEL_BSP_EXPORT_TIMEOUT=100")
	server.Create(t, contracttest.Client(t))
	providerdtest.WaitUntil(t, "the export fails for want of time", func() bool {
		return slices.Contains(errorsOfTraces(t, server.Stderr.String()), "the collector did not respond in time")
	})
}
