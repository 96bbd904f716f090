package serving_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// expectHealth runs the command with a server's environment. It ends well where it says that the server is ready.
func expectHealth(t *testing.T, folder, want string, environment ...string) {
	t.Helper()
	command := providerdtest.Command(t.Context(), folder, "health")
	command.Env = append(os.Environ(), environment...)
	output, err := command.CombinedOutput()
	if !strings.Contains(string(output), want) || (err == nil) != (string(output) == "ready\n") {
		t.Errorf("it says %s, %v, want %s", output, err, want)
	}
}

func TestHealthAsksTheServerOfItsMachine(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0", ":0"} {
		folder := t.TempDir()
		server := providerdtest.Serve(t, folder, "--listen", listen)
		port := server.URL[strings.LastIndexByte(server.URL, ':')+1:]
		address := "PROVIDERD_LISTEN=" + strings.TrimSuffix(listen, "0") + port
		expectHealth(t, folder, "ready\n", address)
		if err := os.Remove(filepath.Join(folder, "data", "keyset.json")); err != nil {
			t.Fatal(err)
		}
		expectHealth(t, folder, "/readyz answers 503 ", address)
		server.MustStop(t)
		expectHealth(t, folder, "does not answer", address)
	}
}

func TestHealthKnowsTheCertificate(t *testing.T) {
	t.Parallel()
	folder, elsewhere := t.TempDir(), t.TempDir()
	providerdtest.WriteCertificate(t, folder, 1)
	providerdtest.WriteCertificate(t, elsewhere, 2)
	server := providerdtest.Serve(t, folder, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	address := "PROVIDERD_LISTEN=" + strings.TrimPrefix(server.URL, "https://")
	expectHealth(t, folder, "ready\n", address, "PROVIDERD_TLS_CERT=cert.pem")
	expectHealth(t, elsewhere, "its certificate is not that of ", address, "PROVIDERD_TLS_CERT=cert.pem")
	expectHealth(t, folder, "it speaks HTTPS: name its certificate with --tls-cert", address)
	expectHealth(t, folder, "has no certificate in PEM", address, "PROVIDERD_TLS_CERT=key.pem")
}

func TestHealthSaysWhyAServerIsNotReady(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	// Each flag is at its bound. What is beyond is refused in testdata/misuse.txtar.
	server := providerdtest.Serve(t, folder, "--drain-delay", "10m", "--max-connections", "1", "--failed-attempts", "1")
	defer func() { _ = server.Kill() }()
	server.Signal(t, syscall.SIGTERM)
	providerdtest.WaitUntil(t, "the log has a line of it", func() bool {
		return strings.Contains(server.Stderr.String(), `msg="shutting down" drain_delay=10m0s`)
	})
	address := "PROVIDERD_LISTEN=" + strings.TrimPrefix(server.URL, "http://")
	expectHealth(t, folder, "it is draining: it was told to stop", address)
	server.Signal(t, syscall.SIGSTOP)
	expectHealth(t, folder, "does not answer within 5s; see the log", address)
}
