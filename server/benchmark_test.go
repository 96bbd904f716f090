package server_test

import (
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/providerd/server"
	"example.com/providerd/store/storetest/processtest"
)

// BenchmarkCreate measures creates like those of cmd/bench, from the handler to the disk, and their validations.
func BenchmarkCreate(b *testing.B) {
	h := start(b)
	handler := h.newServer(b, func(config *server.Config) {
		config.Logger = slog.New(slog.NewTextHandler(io.Discard, nil)) //nolint:sloglint // Lines are part of a create.
		config.Metrics = server.NewMetrics(prometheus.NewRegistry(), config.Contract, config.Store)
	})
	sent := 0
	for name, kind := range map[string]struct {
		query   string
		hasKeys bool
		status  int
	}{
		"without key":   {"", false, http.StatusCreated},
		"with key":      {"", true, http.StatusCreated},
		"validate_only": {"?validate_only=true", false, http.StatusOK},
	} {
		b.Run(name, func(b *testing.B) {
			template, err := http.NewRequestWithContext(b.Context(), http.MethodPost, oauth2Path+kind.query, http.NoBody)
			processtest.Must(b, err)
			template.RemoteAddr, template.Host = "192.0.2.1:1234", "providerd.example.com"
			template.Header.Set("Authorization", "Bearer "+h.token)
			template.Header.Set("Content-Type", "application/json")
			response := &discarded{header: http.Header{}}
			for range b.N {
				sent++
				request, text := *template, strings.ReplaceAll(benchmarkBody, "%", strconv.Itoa(sent))
				request.Body, request.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
				if kind.hasKeys {
					request.Header.Set("Idempotency-Key", "key-"+strconv.Itoa(sent))
				}
				clear(response.header)
				if handler.ServeHTTP(response, &request); response.status != kind.status {
					b.Fatalf("status is %d", response.status)
				}
			}
		})
	}
}

// benchmarkBody is like the bodies of cmd/bench/load.lua.
const benchmarkBody = `{"name":"bench %","authorization_flow":"` + flow +
	`","redirect_uris":"https://app%.example.com/callback","sub_mode":"user_uuid"}`

// discarded is a response of which only the status is kept.
type discarded struct {
	header http.Header
	status int
}

func (d *discarded) Header() http.Header            { return d.header }
func (d *discarded) Write(text []byte) (int, error) { return len(text), nil }
func (d *discarded) WriteHeader(status int)         { d.status = status }
