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
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// TestTLS replaces the certificate of a server in several ways. Each problem is logged once.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	providerdtest.WriteCertificateValid(t, dir, 9, time.Now().Add(-time.Hour), time.Now())
	expired := providerdtest.Serve(t, dir, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	expired.Stop(t)
	if !strings.Contains(expired.Stderr.String(), "the certificate has expired, so clients refuse connections") {
		t.Errorf("log is %s", expired.Stderr)
	}
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
		if serial := providerdtest.ServedSerial(t, address); serial != step.serial {
			t.Errorf("certificate %d is served %s, want %d", serial, step.when, step.serial)
		}
	}
	server.Stop(t)
	if log := server.Stderr.String(); strings.Count(log, "cannot load certificate") != 3 ||
		!strings.Contains(log, "private key does not match public key") {
		t.Errorf("log is %s", log)
	}
	client.CloseIdleConnections()
}
