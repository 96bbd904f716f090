package command

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// startWatched starts a server that operators can watch, and returns the URL for them, too.
func startWatched(t *testing.T, folder string) (server *process, url string) {
	t.Helper()
	server = serve(t, folder, "--ops-listen", "127.0.0.1:0")
	return server, opsURL(t, server)
}

// opsURL is where a server says that operators reach it.
func opsURL(t *testing.T, server *process) (url string) {
	t.Helper()
	waitUntil(t, "the server says where operators reach it", func() bool {
		url = opsURLIn(server.stderr.String())
		return url != ""
	})
	return url
}

// opsURLIn is the URL that a log names for operators, or "" where it names none.
func opsURLIn(log string) string {
	match := regexp.MustCompile(`serving metrics, health and profiles on (http://[0-9.:]+)`).FindStringSubmatch(log)
	if match == nil {
		return ""
	}
	return match[1]
}

// get returns the status and the body of what a URL leads to.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestOperatorsAreServedApart(t *testing.T) {
	t.Parallel()
	server, ops := startWatched(t, t.TempDir())
	for path, want := range map[string]int{
		"/metrics": http.StatusOK, "/healthz": http.StatusOK, "/readyz": http.StatusOK,
		"/debug/pprof/heap": http.StatusOK, "/": http.StatusNotFound, "/openapi.yaml": http.StatusNotFound,
		oauth2Path: http.StatusNotFound, "/debug/vars": http.StatusNotFound,
	} {
		if status, text := get(t, ops+path); status != want {
			t.Errorf("%s for operators: status is %d, want %d: %s", path, status, want, text)
		}
	}
	for _, path := range []string{"/metrics", "/debug/pprof/heap"} {
		if status, _ := get(t, server.url+path); status != http.StatusNotFound {
			t.Errorf("%s for everyone: status is %d", path, status)
		}
	}
}

// Profiles are asked for by other machines, and as a page in a browser does whose name leads to this machine.
func TestProfilesAreForThisMachine(t *testing.T) {
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

// TestHostileConnectionsOfOperators takes all places there are, so that the next one gets that of the first, and sends
// more than a header may have.
func TestHostileConnectionsOfOperators(t *testing.T) {
	t.Parallel()
	_, ops := startWatched(t, t.TempDir())
	watched := &process{url: ops}
	first := dial(t, watched)
	for range maxOpsConnections - 1 {
		dial(t, watched)
	}
	if status, text := get(t, ops+"/metrics"); status != http.StatusOK {
		t.Errorf("status is %d: %s", status, text)
	}
	// Without the bound, it would be closed once its header is late, after 10 seconds.
	if err := first.SetReadDeadline(time.Now().Add(8 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the first connection is still there")
	}
	long := dial(t, watched)
	header := "GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 16<<10) + "\r\n\r\n"
	if _, err := io.WriteString(long, header); err != nil {
		t.Fatal(err)
	}
	// The answer may be lost, because the server does not read the rest.
	answer, err := http.ReadResponse(bufio.NewReader(long), nil)
	if err == nil && (answer.Body.Close() != nil || answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge) {
		t.Errorf("a header of 16 KiB is answered %d", answer.StatusCode)
	}
}

// Operators can watch how a server ends: until the last request is answered.
func TestOperatorsSeeTheEnd(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	server, ops := startWatched(t, folder)
	begun := beginCreate(t, server, folder)
	server.signal(t, syscall.SIGTERM)
	waitUntil(t, "no caller is taken in any more", server.isClosed)
	for _, path := range []string{"/metrics", "/healthz"} {
		if status, text := get(t, ops+path); status != http.StatusOK {
			t.Errorf("%s: status is %d: %s", path, status, text)
		}
	}
	begun.finish(t)
	if err := server.command.Wait(); err != nil {
		t.Errorf("%v: %s", err, server.stderr)
	}
}
