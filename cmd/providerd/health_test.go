package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// askHealth runs the command with a server's environment, and returns what it says and whether it ends well.
func askHealth(t *testing.T, folder string, environment ...string) (string, bool) {
	t.Helper()
	command := newCommand(t.Context(), folder, "health")
	command.Env = append(os.Environ(), environment...)
	output, err := command.CombinedOutput()
	return string(output), err == nil
}

func TestHealthAsksTheServerOfItsMachine(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0", ":0"} {
		folder := t.TempDir()
		server := serve(t, folder, "--listen", listen)
		port := server.url[strings.LastIndexByte(server.url, ':')+1:]
		address := "PROVIDERD_LISTEN=" + strings.TrimSuffix(listen, "0") + port
		if says, ok := askHealth(t, folder, address); !ok || says != "ready\n" {
			t.Errorf("%s: ends well is %v, and says %s", address, ok, says)
		}
		if err := os.Remove(filepath.Join(folder, "data", "keyset.json")); err != nil {
			t.Fatal(err)
		}
		if says, ok := askHealth(t, folder, address); ok || !strings.Contains(says, "/readyz answers 503 ") {
			t.Errorf("not ready: ends well is %v, and says %s", ok, says)
		}
		server.end(t)
		if says, ok := askHealth(t, folder, address); ok || !strings.Contains(says, "does not answer") {
			t.Errorf("without a server: ends well is %v, and says %s", ok, says)
		}
	}
}

func TestHealthKnowsTheCertificate(t *testing.T) {
	t.Parallel()
	folder, elsewhere := t.TempDir(), t.TempDir()
	writeCertificate(t, folder, 1)
	writeCertificate(t, elsewhere, 2)
	server := serve(t, folder, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	address := "PROVIDERD_LISTEN=" + strings.TrimPrefix(server.url, "https://")
	for folder, wanted := range map[string]string{
		folder: "ready\n", elsewhere: "its certificate is not that of ",
	} {
		says, ok := askHealth(t, folder, address, "PROVIDERD_TLS_CERT=cert.pem")
		if !strings.Contains(says, wanted) || ok != (wanted == "ready\n") {
			t.Errorf("ends well is %v, and says %s, want %s", ok, says, wanted)
		}
	}
	if says, ok := askHealth(t, folder, address); ok || !strings.Contains(says, "it speaks HTTPS: name its certificate with --tls-cert") {
		t.Errorf("without a certificate: ends well is %v, and says %s", ok, says)
	}
	if says, ok := askHealth(t, folder, address, "PROVIDERD_TLS_CERT=key.pem"); ok || !strings.Contains(says, "has no certificate in PEM") {
		t.Errorf("a key for a certificate: ends well is %v, and says %s", ok, says)
	}
}

func TestHealthSaysWhyAServerIsNotReady(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	server := serve(t, folder, "--drain-delay", "10m")
	defer func() { _ = server.kill() }()
	if err := server.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the log has a line of it", func() bool {
		return strings.Contains(server.stderr.String(), `msg="told to stop; not ready any more" drain_delay=10m0s`)
	})
	address := "PROVIDERD_LISTEN=" + strings.TrimPrefix(server.url, "http://")
	if says, ok := askHealth(t, folder, address); ok || !strings.Contains(says, "it is draining: it was told to stop") {
		t.Errorf("draining: ends well is %v, and says %s", ok, says)
	}
	if err := server.command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if says, ok := askHealth(t, folder, address); ok || !strings.Contains(says, "does not answer within 5s; see the log") {
		t.Errorf("frozen: ends well is %v, and says %s", ok, says)
	}
}
