package serving_test

import (
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	providerdtest.WriteCertificate(t, dir, 1)
	server := providerdtest.Serve(t, dir, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	address, ok := strings.CutPrefix(server.URL, "https://")
	if !ok {
		t.Fatalf("the URL is %s", server.URL)
	}
	trusted := providerdtest.CertPool(t, dir)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	server.Create(t, client)
	old := &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if connection, err := tls.Dial("tcp", address, old); err == nil {
		t.Error("TLS 1.1 is spoken")
		_ = connection.Close()
	}

	providerdtest.WriteCertificate(t, dir, 2)
	if serial := providerdtest.ServedSerial(t, address); serial != 2 {
		t.Errorf("certificate %d is served after a change, want 2", serial)
	}
	if err := os.WriteFile(filepath.Join(dir, "key.pem"), []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	if serial := providerdtest.ServedSerial(t, address); serial != 2 {
		t.Errorf("certificate %d is served with a broken key, want 2", serial)
	}
	fifo := filepath.Join(dir, "cert.pem")
	if err := errors.Join(os.Remove(fifo), syscall.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	if serial := providerdtest.ServedSerial(t, address); serial != 2 {
		t.Errorf("certificate %d is served with a FIFO in its place, want 2", serial)
	}
	if err := os.Remove(fifo); err != nil {
		t.Fatal(err)
	}
	providerdtest.WriteCertificate(t, dir, 3)
	if serial := providerdtest.ServedSerial(t, address); serial != 3 {
		t.Errorf("certificate %d is served after the repair, want 3", serial)
	}
	server.MustStop(t)
	if log := server.Stderr.String(); strings.Count(log, "cannot load certificate") != 2 {
		t.Errorf("log is %s", log)
	}
	client.CloseIdleConnections()
}

func TestInvalidCertificateCreatesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	providerdtest.WriteCertificate(t, dir, 1)
	if err := os.WriteFile(filepath.Join(dir, "key.pem"), []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := providerdtest.Start(t.Context(), dir, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	if err == nil || !strings.Contains(err.Error(), "key.pem") {
		t.Errorf("error is %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a database was created, %v", err)
	}
}

func TestPlainHTTPWarning(t *testing.T) {
	t.Parallel()
	for address, warned := range map[string]bool{"0.0.0.0:0": true, "[::1]:0": false, "127.0.0.1:0": false} {
		dir := t.TempDir()
		server := providerdtest.Serve(t, dir, "--listen", address)
		server.MustStop(t)
		if strings.Contains(server.Stderr.String(), "--tls-cert") != warned {
			t.Errorf("%s: output is %s", address, server.Stderr)
		}
	}
}
