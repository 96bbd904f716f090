package server_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/providerd/gen/api"
	"example.com/providerd/server"
	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
)

// BenchmarkCreate is one create after the other, from the request to the disk.
func BenchmarkCreate(b *testing.B) {
	plain, token := bareServer(b, nil)
	watched, itsToken := bareServer(b, prometheus.NewRegistry())
	for _, c := range []struct {
		name, path, token string
		handler           http.Handler
	}{
		{"oauth2", oauth2Path, token, plain},
		{"oauth2 with metrics", oauth2Path, itsToken, watched},
		{"workspace_directory", workspaceDirectoryPath, token, plain},
	} {
		body := encode(b, minimal(c.path))
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if status := benchmarkPost(c.handler, c.path, c.token, body); status != http.StatusCreated {
					b.Fatalf("status is %d", status)
				}
			}
		})
	}
}

// BenchmarkRefuse is a request that breaks ten rules: what validation costs without the store.
func BenchmarkRefuse(b *testing.B) {
	handler, token := bareServer(b, nil)
	const body = `{"name":5,"client_id":"","client_type":"x","redirect_uris":"\n","sub_mode":1,"issuer_mode":null,` +
		`"property_mappings":["x",null],"pk":1}`
	b.ReportAllocs()
	for b.Loop() {
		if status := benchmarkPost(handler, oauth2Path, token, body); status != http.StatusBadRequest {
			b.Fatalf("status is %d", status)
		}
	}
}

// bareServer is a server without a listener, and a token for it. Where there is a registry, it has metrics.
func bareServer(b testing.TB, registry prometheus.Registerer) (http.Handler, string) {
	b.Helper()
	database, err := storetest.CreateSQLite(b.Context(), filepath.Join(b.TempDir(), "test.db"), "")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = database.Close() })
	contract, err := server.ParseContract(b.Context(), api.Contract())
	if err != nil {
		b.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(io.Discard, nil)) //nolint:sloglint // What a line costs is measured too.
	config := server.Config{Contract: contract, Store: database, Logger: logger, FailedAttempts: 1_000_000}
	if registry != nil {
		config.Metrics = server.NewMetrics(registry, contract, database)
	}
	handler, err := server.New(config)
	if err != nil {
		b.Fatal(err)
	}
	token, _, err := database.CreateToken(b.Context(), store.TokenGrant{
		Name: "bench", Operations: contract.Operations(), ExpiresIn: time.Hour,
	})
	if err != nil {
		b.Fatal(err)
	}
	return handler, token
}

func benchmarkPost(handler http.Handler, path, token, body string) int {
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder.Code
}
