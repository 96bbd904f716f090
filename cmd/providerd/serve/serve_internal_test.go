package serve

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// timedOutput notes when it gets how many lines.
type timedOutput struct {
	start  time.Time
	writes []string
}

func (o *timedOutput) Write(lines []byte) (int, error) {
	o.writes = append(o.writes, fmt.Sprintf("%d at %v", bytes.Count(lines, []byte("\n")), time.Since(o.start)))
	return len(lines), nil
}

// TestLogWriterPauses checks that a line is written at once, and the following ones 10 ms later or on close.
func TestLogWriterPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		output := &timedOutput{start: time.Now()}
		writer := newLogWriter(output, func(int64) []byte { return nil })
		_, _ = writer.Write([]byte("\n"))
		synctest.Wait()
		_, _ = writer.Write([]byte("\n"))
		_, _ = writer.Write([]byte("\n"))
		<-time.After(25 * time.Millisecond)
		_, _ = writer.Write([]byte("\n"))
		synctest.Wait()
		_, _ = writer.Write([]byte("\n"))
		_, _ = writer.Write([]byte("\n"))
		writer.close()
		if want := []string{"1 at 0s", "2 at 10ms", "1 at 25ms", "2 at 25ms"}; !slices.Equal(output.writes, want) {
			t.Errorf("writes are %q, want %q", output.writes, want)
		}
	})
}

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
