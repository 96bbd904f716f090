package serve

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestProfilesAreLocal requests profiles from other machines, and with a Host as in DNS rebinding.
func TestProfilesAreLocal(t *testing.T) {
	t.Parallel()
	handler := opsHandler(http.NotFoundHandler(), prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		remote, host string
		want         int
	}{
		{"127.0.0.1:40000", "127.0.0.1:9464", http.StatusOK},
		{"127.0.0.1:40000", "localhost:9464", http.StatusOK},
		{"127.0.0.1:40000", "localhost:6060", http.StatusOK},
		{"[::1]:40000", "[::1]:9464", http.StatusOK},
		{"[::ffff:127.0.0.1]:40000", "localhost", http.StatusOK},
		{"127.0.0.1:40000", "example.com:9464", http.StatusMisdirectedRequest},
		{"127.0.0.1:40000", "example.com", http.StatusMisdirectedRequest},
		{"127.0.0.1:40000", "localhost.example.com", http.StatusMisdirectedRequest},
		{"127.0.0.1:40000", "127.0.0.1.example.com", http.StatusMisdirectedRequest},
		{"127.0.0.1:40000", "", http.StatusMisdirectedRequest},
		{"192.0.2.7:40000", "localhost:9464", http.StatusForbidden},
		{"[2001:db8::7]:40000", "[::1]:9464", http.StatusForbidden},
	} {
		for path, want := range map[string]int{
			"/debug/pprof/": c.want, "/debug/pprof/heap": c.want, "/metrics": http.StatusOK,
		} {
			request := httptest.NewRequest(http.MethodGet, path, nil)
			request.RemoteAddr, request.Host = c.remote, c.host
			recorder := httptest.NewRecorder()
			if handler.ServeHTTP(recorder, request); recorder.Code != want {
				t.Errorf("%s from %s for %q: status is %d, want %d", path, c.remote, c.host, recorder.Code, want)
			}
		}
	}
}
