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
	folder := t.TempDir()
	providerdtest.WriteCertificate(t, folder, 1)
	server := providerdtest.Serve(t, folder, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	address, ok := strings.CutPrefix(server.URL, "https://")
	if !ok {
		t.Fatalf("the server says %s", server.URL)
	}
	trusted := providerdtest.CertPool(t, folder)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	server.Create(t, client)
	old := &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if connection, err := tls.Dial("tcp", address, old); err == nil {
		t.Error("TLS 1.1 is spoken")
		_ = connection.Close()
	}

	providerdtest.WriteCertificate(t, folder, 2)
	if serial := providerdtest.ServedSerial(t, address); serial != 2 {
		t.Errorf("certificate %d is served after a change, not 2", serial)
	}
	if err := os.WriteFile(filepath.Join(folder, "key.pem"), []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	if serial := providerdtest.ServedSerial(t, address); serial != 2 {
		t.Errorf("certificate %d is served with a broken key, not 2", serial)
	}
	fifo := filepath.Join(folder, "cert.pem")
	if err := errors.Join(os.Remove(fifo), syscall.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	if serial := providerdtest.ServedSerial(t, address); serial != 2 {
		t.Errorf("certificate %d is served with a FIFO in its place, not 2", serial)
	}
	if err := os.Remove(fifo); err != nil {
		t.Fatal(err)
	}
	providerdtest.WriteCertificate(t, folder, 3)
	if serial := providerdtest.ServedSerial(t, address); serial != 3 {
		t.Errorf("certificate %d is served after the repair, not 3", serial)
	}
	server.MustStop(t)
	if log := server.Stderr.String(); strings.Count(log, "cannot load certificate") != 2 {
		t.Errorf("log is %s", log)
	}
	client.CloseIdleConnections()
}

func TestWrongCertificateMakesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	providerdtest.WriteCertificate(t, folder, 1)
	if err := os.WriteFile(filepath.Join(folder, "key.pem"), []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := providerdtest.Start(t.Context(), folder, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	if err == nil || !strings.Contains(err.Error(), "key.pem") {
		t.Errorf("error is %v", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "data")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a database was made, %v", err)
	}
}

func TestPlainHTTPBeyondThisMachineIsWarnedOf(t *testing.T) {
	t.Parallel()
	for address, warned := range map[string]bool{"0.0.0.0:0": true, "[::1]:0": false, "127.0.0.1:0": false} {
		folder := t.TempDir()
		server := providerdtest.Serve(t, folder, "--listen", address)
		server.MustStop(t)
		if strings.Contains(server.Stderr.String(), "--tls-cert") != warned {
			t.Errorf("%s: output is %s", address, server.Stderr)
		}
	}
}
