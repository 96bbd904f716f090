package serving_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestTLS replaces the certificate of a server in several ways. Each problem is logged once.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	providerdtest.WriteCertificateValid(t, dir, 9, time.Now().Add(-time.Hour), time.Now())
	expired := providerdtest.Serve(t, dir, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	expired.Stop(t)
	processtest.Contains(t, expired.Stderr.String(), "the certificate has expired, so clients refuse connections")
	providerdtest.WriteCertificate(t, dir, 1)
	server := providerdtest.Serve(t, dir, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	address, ok := strings.CutPrefix(server.URL, "https://")
	processtest.Require(t, ok, "the URL is %s", server.URL)
	trusted := providerdtest.CertPool(t, dir)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	server.Create(t, client)
	old := &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if connection, err := tls.Dial("tcp", address, old); err == nil {
		t.Error("TLS 1.1 is spoken")
		_ = connection.Close()
	}

	cert, key, next := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), t.TempDir()
	providerdtest.WriteCertificate(t, next, 4)
	for _, step := range []struct {
		when   string
		change func() error
		serial int64
	}{
		{"after a change", func() error { providerdtest.WriteCertificate(t, dir, 2); return nil }, 2},
		{"with a new chain and the old key", func() error { return os.Rename(filepath.Join(next, "cert.pem"), cert) }, 2},
		{"with both", func() error { return os.Rename(filepath.Join(next, "key.pem"), key) }, 4},
		{"with a broken key", func() error { return os.WriteFile(key, []byte("rubbish"), 0o600) }, 4},
		{"with the key still broken", func() error { return nil }, 4},
		{"with a FIFO in its place", func() error { return errors.Join(os.Remove(cert), syscall.Mkfifo(cert, 0o600)) }, 4},
		{"after the repair", func() error {
			err := os.Remove(cert)
			providerdtest.WriteCertificate(t, dir, 3)
			return err
		}, 3},
	} {
		processtest.Must(t, step.change())
		serial := providerdtest.ServedSerial(t, address)
		processtest.Expect(t, serial == step.serial, "certificate %d is served %s, want %d", serial, step.when, step.serial)
	}
	processtest.Must(t, os.WriteFile(key, []byte("rubbish"), 0o600))
	processtest.WaitUntil(t, "it is reported without a handshake", func() bool {
		return strings.Count(server.Stderr.String(), "cannot load certificate") == 4
	})
	server.Stop(t)
	processtest.Contains(t, server.Stderr.String(), "private key does not match public key")
	client.CloseIdleConnections()
}

// TestTrustedProxy sends requests as a proxy: limits, the log and the audit use the addresses of its clients.
func TestTrustedProxy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir, "--trusted-proxy", "127.0.0.0/8", "--trusted-proxy", "::1",
		"--failed-attempts", "1", "--ops-listen", "127.0.0.1:0")
	ops := providerdtest.OpsURL(t, server)
	token := providerdtest.Token(t, dir)
	for _, request := range []struct {
		token, forwarded string
		want             int
	}{
		{"invalid", "192.0.2.1", http.StatusUnauthorized},
		{"invalid", "192.0.2.1", http.StatusTooManyRequests},
		{"invalid", "192.0.2.2", http.StatusUnauthorized},
		{"invalid", "203.0.113.9, 192.0.2.2", http.StatusTooManyRequests},
		{token, "192.0.2.1", http.StatusCreated},
		{token, "nonsense", http.StatusCreated},
	} {
		header := http.Header{"Content-Type": {"application/json"}, "X-Forwarded-For": {request.forwarded}}
		status := server.Send(t, http.DefaultClient, http.MethodPost, providerdtest.OAuth2Path, request.token, providerdtest.OAuth2Body, header)
		processtest.Equal(t, status, request.want, "status for %s, %s", request.token, request.forwarded)
	}
	processtest.Equal(t, providerdtest.Scrape(t, ops)["providerd_malformed_forwarded_total"], 1, "malformed requests")
	audit := providerdtest.RunCommand(t, dir, "audit")
	server.Stop(t)
	for _, want := range []string{" 192.0.2.1\n", " 127.0.0.1\n"} {
		processtest.Contains(t, audit, want)
	}
	if log := server.Stderr.String(); strings.Count(log, " client=192.0.2.") != 5 || strings.Contains(log, "203.0.113.9") {
		t.Errorf("the log is %s", log)
	}
}

// TestRateLimit checks that a client can continue after waiting, and that refused requests do not count.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	server := providerdtest.Serve(t, t.TempDir(), "--ops-listen", "127.0.0.1:0", "--rate-limit", "2/s")
	ops, client := providerdtest.OpsURL(t, server), contracttest.Client(t)
	statuses := map[int]int{}
	processtest.WaitUntil(t, "five creates are stored and one is refused", func() bool {
		status, _, err := server.Post(client, providerdtest.OAuth2Path, providerdtest.OAuth2Body)
		processtest.Must(t, err)
		statuses[status]++
		return statuses[http.StatusCreated] >= 5 && statuses[http.StatusTooManyRequests] > 0
	})
	const limited = `providerd_rate_limited_total{operation="providers_oauth2_create"}`
	if count := providerdtest.Scrape(t, ops)[limited]; len(statuses) != 2 || count != float64(statuses[http.StatusTooManyRequests]) {
		t.Errorf("statuses are %v, and %v requests are counted as limited", statuses, count)
	}
}

// TestOpsListenerIsSeparate also requests profiles that are too long.
func TestOpsListenerIsSeparate(t *testing.T) {
	t.Parallel()
	server, ops := providerdtest.ServeWithOps(t, t.TempDir())
	for path, want := range map[string]int{
		"/metrics": http.StatusOK, "/healthz": http.StatusOK, "/readyz": http.StatusOK,
		"/debug/pprof/heap": http.StatusOK, "/": http.StatusOK, "/openapi.yaml": http.StatusOK,
		providerdtest.OAuth2Path: http.StatusNotFound, "/debug/vars": http.StatusNotFound,
		"/debug/pprof/profile?seconds=61": http.StatusBadRequest, "/debug/pprof/heap?seconds=1e9": http.StatusBadRequest,
		"/debug/pprof/heap?seconds=-1": http.StatusBadRequest, "/debug/pprof/heap?seconds=NaN": http.StatusBadRequest,
		"/debug/pprof/heap?seconds=x": http.StatusBadRequest, "/debug/pprof/heap?seconds=1": http.StatusOK,
		"/debug/pprof/profile?seconds=1": http.StatusOK, "/debug/pprof/trace?seconds=1": http.StatusNotFound,
		"/docs": http.StatusNotFound, "/manual/nothing": http.StatusNotFound, "/deploy/nothing": http.StatusNotFound,
	} {
		status, text := providerdtest.Get(t, ops+path)
		isExplained := strings.Contains(text, `<a href="/healthz">`)
		if status != want || isExplained != (want == http.StatusNotFound && !strings.HasPrefix(path, "/debug/pprof")) {
			t.Errorf("%s on the ops listener: status is %d, want %d: %s", path, status, want, text)
		}
	}
	for _, path := range []string{"/metrics", "/debug/pprof/heap"} {
		status, _ := providerdtest.Get(t, server.URL+path)
		processtest.Expect(t, status == http.StatusNotFound, "%s on the API listener: status is %d", path, status)
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
	status, text := providerdtest.Get(t, ops+"/metrics")
	processtest.Expect(t, status == http.StatusOK, "status is %d: %s", status, text)
	// Without the limit, it would be closed after the header timeout of 10 seconds.
	processtest.Must(t, first.SetReadDeadline(time.Now().Add(8*time.Second)))
	_, err := first.Read(make([]byte, 1))
	processtest.Expect(t, !errors.Is(err, os.ErrDeadlineExceeded), "the first connection is still open")
	long := providerdtest.Dial(t, watched)
	header := "GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 16<<10) + "\r\n\r\n"
	processtest.Try(io.WriteString(long, header)).Must(t)
	// The response may be lost, because the server does not read the rest.
	response, err := http.ReadResponse(bufio.NewReader(long), nil)
	if err == nil {
		processtest.Check(t, response.Body.Close())
		processtest.Equal(t, response.StatusCode, http.StatusRequestHeaderFieldsTooLarge, "status of a 16 KiB header")
	}
}
