// Package serving_test tests servers as processes: start, shutdown and kills, logs, metrics and traces, TLS, full and
// failing disks, the many requests of apply, and replicas over PostgreSQL. Package hostile tests hostile clients, soak
// long runs, and failover lost databases.
//
// Start with this file, the life of one server.
package serving_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

func TestMain(m *testing.M) { providerdtest.Main(m) }

// TestLifeCycle checks what a service manager and a load balancer see of a server, from start to exit.
func TestLifeCycle(t *testing.T) {
	t.Parallel()
	dir, client := t.TempDir(), contracttest.Client(t)
	manager := providerdtest.ListenAsManager(t, filepath.Join(dir, "notify"))
	server := providerdtest.Serve(t, dir,
		"NOTIFY_SOCKET="+manager.LocalAddr().String(), "WATCHDOG_USEC=20000", "--drain-delay", "3s")
	expectState(t, manager, "READY=1\nSTATUS=serving on "+server.URL)
	expectState(t, manager, "WATCHDOG=1")
	server.ExpectReadiness(t, "ready")
	told := time.Now()
	server.Signal(t, syscall.SIGTERM)
	expectState(t, manager, "STOPPING=1\nEXTEND_TIMEOUT_USEC=63000000\nSTATUS=draining: not ready, still serving requests")
	server.ExpectReadiness(t, "draining")
	server.Create(t, client)
	expectState(t, manager, "WATCHDOG=1")
	expectState(t, manager, "STATUS=finishing requests in flight")
	delay := time.Since(told)
	processtest.Expect(t, delay >= 3*time.Second, "the server drained for %v", delay)
	err := server.Wait()
	processtest.Expect(t, err == nil, "exit: %v: %s", err, server.Stderr)
	processtest.Equal(t, len(providerdtest.StoredPKs(t, dir)), 1, "stored records")
}

// expectState reads the next notification, except pings of the watchdog, which must be want.
func expectState(t *testing.T, manager *net.UnixConn, want string) {
	t.Helper()
	message := make([]byte, 1024)
	for {
		length := processtest.Try(manager.Read(message)).Must(t)
		switch state := string(message[:length]); state {
		case want:
			return
		case "WATCHDOG=1":
		default:
			t.Fatalf("the service manager got %q, want %q", state, want)
		}
	}
}

// TestRequestsInFlightFinish stops a server under load. Exactly the acknowledged creates are stored.
func TestRequestsInFlightFinish(t *testing.T) {
	t.Parallel()
	dir, client, sent := t.TempDir(), contracttest.Client(t), providerdtest.NewJournal()
	server := providerdtest.Serve(t, dir)
	load := sent.Load(8, "load", func(name string) (providerdtest.Record, error) {
		status, record, err := server.CreateNamed(client, name, "")
		processtest.Expect(t, err != nil || status == http.StatusCreated, "status is %d", status)
		return record, err
	})
	sent.WaitForMore(t, 100)
	server.Stop(t)
	load.Stop()
	// Each caller ends with a create that no server accepts.
	clear(sent.Failures)
	sent.Compare(t, providerdtest.Stored(t, dir))
}

// expectHealth runs "health" with a server's environment. It must succeed only if it prints that the server is ready.
func expectHealth(t *testing.T, dir, want string, environment ...string) {
	t.Helper()
	output, err := providerdtest.Command(t.Context(), dir, append(environment, "health")...).CombinedOutput()
	processtest.Expect(t, regexp.MustCompile("^(providerd: http.*/readyz )?"+want+"\n$").Match(output) &&
		(err == nil) == (string(output) == "ready\n"), "output is %s, %v, want %s", output, err, want)
}

func TestHealthChecksLocalServer(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0", ":0"} {
		server := providerdtest.Serve(t, t.TempDir(), "--listen", listen)
		port := server.URL[strings.LastIndexByte(server.URL, ':')+1:]
		want := map[bool]string{true: "[::1]", false: "127.0.0.1"}[listen == "[::1]:0"]
		processtest.Expect(t, server.URL == "http://"+want+":"+port, "with --listen %s, the URL is %s", listen, server.URL)
		connection, err := net.Dial("tcp6", "[::1]:"+port)
		if err == nil {
			processtest.Must(t, connection.Close())
		}
		isIPv4 := strings.Contains(listen, ".")
		processtest.Expect(t, isIPv4 != (err == nil), "with --listen %s, connecting by IPv6 returns %v", listen, err)
		address := "PROVIDERD_LISTEN=" + strings.TrimSuffix(listen, "0") + port
		expectHealth(t, server.Dir, "ready", address)
		providerdtest.WriteCertificate(t, server.Dir, 1)
		expectHealth(t, server.Dir, "serves plain HTTP; omit --tls-cert, or enable TLS on the server", address, "PROVIDERD_TLS_CERT=cert.pem")
		processtest.Must(t, os.Remove(filepath.Join(server.Dir, "data", "keyset.json")))
		expectHealth(t, server.Dir, `responds with 503 Service Unavailable; run "providerd doctor" or see the log of the server`, address)
		server.Stop(t)
		expectHealth(t, server.Dir, "does not respond: .*; start the server, or pass its address with --listen", address)
	}
}

func TestHealthVerifiesCertificate(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	providerdtest.WriteCertificate(t, dir, 1)
	providerdtest.WriteCertificate(t, elsewhere, 2)
	server := providerdtest.Serve(t, dir, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	address := "PROVIDERD_LISTEN=" + strings.TrimPrefix(server.URL, "https://")
	expectHealth(t, dir, "ready", address, "PROVIDERD_TLS_CERT=cert.pem")
	expectHealth(t, elsewhere, "presents a certificate other than the one in cert.pem; pass the server's certificate with --tls-cert", address, "PROVIDERD_TLS_CERT=cert.pem")
	expectHealth(t, dir, ".*; it serves HTTPS; pass its certificate with --tls-cert", address)
	expectHealth(t, dir, "providerd: key.pem does not contain a PEM certificate; pass the server's certificate with --tls-cert", address, "PROVIDERD_TLS_CERT=key.pem")
}

func TestHealthReportsWhyNotReady(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// Each flag is at its limit. The script usage_errors.txtar exceeds them.
	server := providerdtest.Serve(t, dir, "--drain-delay", "10m", "--max-connections", "1", "--failed-attempts", "1",
		"--rate-limit", "999999/h")
	defer func() { _ = server.Child.Kill() }()
	server.Signal(t, syscall.SIGTERM)
	processtest.WaitUntil(t, "the log has a line of it", func() bool {
		return strings.Contains(server.Stderr.String(), `msg="shutting down" drain_delay=10m0s`)
	})
	address := "PROVIDERD_LISTEN=" + strings.TrimPrefix(server.URL, "http://")
	expectHealth(t, dir, "responds with 503 Service Unavailable; it is shutting down", address)
	server.Signal(t, syscall.SIGSTOP)
	expectHealth(t, dir, "does not respond within 5s; see the log of the server, or restart it", address)
}
