package server_test

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/providerd/server"
)

// BenchmarkCreate measures sequential creates, from the request to the disk.
func BenchmarkCreate(b *testing.B) {
	plain := newTarget(b)
	for _, c := range []struct {
		name, path string
		target     target
	}{
		{"oauth2", oauth2Path, plain},
		{"oauth2 with metrics", oauth2Path, newTarget(b, func(config *server.Config) {
			config.Metrics = server.NewMetrics(prometheus.NewRegistry(), config.Contract, config.Store)
		})},
		{"workspace_directory", workspaceDirectoryPath, plain},
	} {
		body := encode(b, minimal(c.path))
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			begun := processorTime(b)
			for b.Loop() {
				if status := c.target.post(c.path, body).status; status != http.StatusCreated {
					b.Fatalf("status is %d", status)
				}
			}
			b.ReportMetric(float64((processorTime(b)-begun).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// BenchmarkRefuse measures a request that breaks ten rules: the cost of validation without the store.
func BenchmarkRefuse(b *testing.B) {
	target := newTarget(b)
	const body = `{"name":5,"client_id":"","client_type":"x","redirect_uris":"\n","sub_mode":1,"issuer_mode":null,` +
		`"property_mappings":["x",null],"pk":1}`
	b.ReportAllocs()
	for b.Loop() {
		if status := target.post(oauth2Path, body).status; status != http.StatusBadRequest {
			b.Fatalf("status is %d", status)
		}
	}
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
