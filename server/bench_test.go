package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"example.com/providerd/server"
)

// BenchmarkCreate measures sequential creates, from the request to the disk.
func BenchmarkCreate(b *testing.B) {
	plain, token := bareServer(b)
	watched, itsToken := bareServer(b, func(config *server.Config) {
		config.Metrics = server.NewMetrics(prometheus.NewRegistry(), config.Contract, config.Store)
	})
	traced, tokenOfTraced := bareServer(b, func(config *server.Config) { config.Traces = tracesOf(b) })
	for _, c := range []struct {
		name, path, token string
		handler           http.Handler
	}{
		{"oauth2", oauth2Path, token, plain},
		{"oauth2 with metrics", oauth2Path, itsToken, watched},
		{"oauth2 with traces", oauth2Path, tokenOfTraced, traced},
		{"workspace_directory", workspaceDirectoryPath, token, plain},
	} {
		body := encode(b, minimal(c.path))
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			begun := processorTime(b)
			for b.Loop() {
				if status := benchmarkPost(c.handler, c.path, c.token, body); status != http.StatusCreated {
					b.Fatalf("status is %d", status)
				}
			}
			b.ReportMetric(float64((processorTime(b)-begun).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// BenchmarkRefuse measures a request that breaks ten rules: the cost of validation without the store.
func BenchmarkRefuse(b *testing.B) {
	handler, token := bareServer(b)
	const body = `{"name":5,"client_id":"","client_type":"x","redirect_uris":"\n","sub_mode":1,"issuer_mode":null,` +
		`"property_mappings":["x",null],"pk":1}`
	b.ReportAllocs()
	for b.Loop() {
		if status := benchmarkPost(handler, oauth2Path, token, body); status != http.StatusBadRequest {
			b.Fatalf("status is %d", status)
		}
	}
}

// collecting replaces a collector, whose own work must not be measured.
type collecting struct{}

func (collecting) RoundTrip(r *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, r.Body)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, err
}

// tracesOf creates spans and exports them as the program does.
func tracesOf(b *testing.B) *server.Traces {
	b.Helper()
	exporter, err := otlptracehttp.New(b.Context(), otlptracehttp.WithHTTPClient(&http.Client{Transport: collecting{}}))
	if err != nil {
		b.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	b.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return server.NewTraces(provider)
}

// processorTime returns the processor time that the process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// bareServer returns a server without a listener, and a token for it. Each change is applied to its configuration.
func bareServer(b testing.TB, changes ...func(*server.Config)) (http.Handler, string) {
	b.Helper()
	h := start(b)
	return h.newServer(b, changes...), h.token
}

func benchmarkPost(handler http.Handler, path, token, body string) int {
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder.Code
}
