package serving_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// TestOpsListenerIsSeparate also requests profiles that are too long.
func TestOpsListenerIsSeparate(t *testing.T) {
	t.Parallel()
	server, ops := providerdtest.ServeWithOps(t, t.TempDir())
	for path, want := range map[string]int{
		"/metrics": http.StatusOK, "/healthz": http.StatusOK, "/readyz": http.StatusOK,
		"/debug/pprof/heap": http.StatusOK, "/": http.StatusNotFound, "/openapi.yaml": http.StatusNotFound,
		providerdtest.OAuth2Path: http.StatusNotFound, "/debug/vars": http.StatusNotFound,
		"/debug/pprof/profile?seconds=61": http.StatusBadRequest, "/debug/pprof/heap?seconds=1e9": http.StatusBadRequest,
		"/debug/pprof/heap?seconds=-1": http.StatusBadRequest, "/debug/pprof/heap?seconds=NaN": http.StatusBadRequest,
		"/debug/pprof/heap?seconds=x": http.StatusBadRequest, "/debug/pprof/heap?seconds=1": http.StatusOK,
		"/debug/pprof/profile?seconds=1": http.StatusOK, "/debug/pprof/trace?seconds=1": http.StatusNotFound,
	} {
		if status, text := providerdtest.Get(t, ops+path); status != want {
			t.Errorf("%s on the ops listener: status is %d, want %d: %s", path, status, want, text)
		}
	}
	for _, path := range []string{"/metrics", "/debug/pprof/heap"} {
		if status, _ := providerdtest.Get(t, server.URL+path); status != http.StatusNotFound {
			t.Errorf("%s on the API listener: status is %d", path, status)
		}
	}
}

// TestOpsConnectionsAreBounded opens the maximum of connections, so that a further one closes the first, and sends a
// header that is too large.
func TestOpsConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	_, ops := providerdtest.ServeWithOps(t, t.TempDir())
	watched := &providerdtest.Server{URL: ops}
	first := providerdtest.Dial(t, watched)
	const limit = 64
	for range limit - 1 {
		providerdtest.Dial(t, watched)
	}
	if status, text := providerdtest.Get(t, ops+"/metrics"); status != http.StatusOK {
		t.Errorf("status is %d: %s", status, text)
	}
	// Without the limit, it would be closed after the header timeout of 10 seconds.
	processtest.Must(t, first.SetReadDeadline(time.Now().Add(8*time.Second)))
	if _, err := first.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the first connection is still open")
	}
	long := providerdtest.Dial(t, watched)
	header := "GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 16<<10) + "\r\n\r\n"
	if _, err := io.WriteString(long, header); err != nil {
		t.Fatal(err)
	}
	// The response may be lost, because the server does not read the rest.
	response, err := http.ReadResponse(bufio.NewReader(long), nil)
	if err == nil && (response.Body.Close() != nil || response.StatusCode != http.StatusRequestHeaderFieldsTooLarge) {
		t.Errorf("status of a 16 KiB header is %d", response.StatusCode)
	}
}
