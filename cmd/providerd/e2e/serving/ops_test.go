package serving_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
)

func TestOperatorsAreServedApart(t *testing.T) {
	t.Parallel()
	server, ops := providerdtest.ServeWithOps(t, t.TempDir())
	for path, want := range map[string]int{
		"/metrics": http.StatusOK, "/healthz": http.StatusOK, "/readyz": http.StatusOK,
		"/debug/pprof/heap": http.StatusOK, "/": http.StatusNotFound, "/openapi.yaml": http.StatusNotFound,
		providerdtest.OAuth2Path: http.StatusNotFound, "/debug/vars": http.StatusNotFound,
	} {
		if status, text := providerdtest.Get(t, ops+path); status != want {
			t.Errorf("%s for operators: status is %d, want %d: %s", path, status, want, text)
		}
	}
	for _, path := range []string{"/metrics", "/debug/pprof/heap"} {
		if status, _ := providerdtest.Get(t, server.URL+path); status != http.StatusNotFound {
			t.Errorf("%s for everyone: status is %d", path, status)
		}
	}
}

// TestHostileConnectionsOfOperators takes all places there are, so that the next one gets that of the first, and sends
// more than a header may have.
func TestHostileConnectionsOfOperators(t *testing.T) {
	t.Parallel()
	_, ops := providerdtest.ServeWithOps(t, t.TempDir())
	watched := &providerdtest.Server{URL: ops}
	first := providerdtest.Dial(t, watched)
	const places = 64
	for range places - 1 {
		providerdtest.Dial(t, watched)
	}
	if status, text := providerdtest.Get(t, ops+"/metrics"); status != http.StatusOK {
		t.Errorf("status is %d: %s", status, text)
	}
	// Without the bound, it would be closed once its header is late, after 10 seconds.
	if err := first.SetReadDeadline(time.Now().Add(8 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the first connection is still there")
	}
	long := providerdtest.Dial(t, watched)
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
	server, ops := providerdtest.ServeWithOps(t, folder)
	begun := providerdtest.BeginCreate(t, server, folder)
	server.Signal(t, syscall.SIGTERM)
	providerdtest.WaitUntil(t, "no caller is taken in any more", server.IsClosed)
	for _, path := range []string{"/metrics", "/healthz"} {
		if status, text := providerdtest.Get(t, ops+path); status != http.StatusOK {
			t.Errorf("%s: status is %d: %s", path, status, text)
		}
	}
	begun.Finish(t)
	if err := server.Command.Wait(); err != nil {
		t.Errorf("%v: %s", err, server.Stderr)
	}
}
