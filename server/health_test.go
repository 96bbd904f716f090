package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The metrics and /readyz report the same readiness.
func TestReadinessWhileDraining(t *testing.T) {
	t.Parallel()
	handler, registry := start(t).startCounted(t, 1)
	expect := func(status int, says string, metric float64) {
		t.Helper()
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		value := seriesOf(t, registry)["providerd_ready"]
		if body := strings.TrimSpace(answer.Body.String()); answer.Code != status || body != says || value != metric {
			t.Errorf("/readyz answers %d %s, and the metric is %v; want %d %s and %v",
				answer.Code, body, value, status, says, metric)
		}
	}
	expect(http.StatusOK, `{"status":"ready"}`, 1)
	handler.BeginDrain()
	expect(http.StatusServiceUnavailable, `{"status":"draining"}`, 0)
}
