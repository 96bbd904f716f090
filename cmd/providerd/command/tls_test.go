package command

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// writeCertificate makes a certificate of its own for 127.0.0.1 and 127.0.0.2, and writes it and its key into a folder.
func writeCertificate(t *testing.T, folder string, serial int64) {
	t.Helper()
	writeCertificateOf(t, folder, serial, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
}

// writeCertificateOf is writeCertificate for one that is valid for a certain time.
func writeCertificateOf(t *testing.T, folder string, serial int64, from, to time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 0, 2)},
		NotBefore: from, NotAfter: to,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: certificate},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// served returns the serial number of the certificate that the server shows once it has read the files again.
func served(t *testing.T, address string) int64 {
	t.Helper()
	<-time.After(reloadInterval)
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	return connection.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// trust returns the certificates that are in folders, for a client that trusts them alone.
func trust(t *testing.T, folders ...string) *x509.CertPool {
	t.Helper()
	trusted := x509.NewCertPool()
	for _, folder := range folders {
		text, err := os.ReadFile(filepath.Join(folder, "cert.pem"))
		if err != nil || !trusted.AppendCertsFromPEM(text) {
			t.Fatal(err)
		}
	}
	return trusted
}

func TestTLS(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeCertificate(t, folder, 1)
	server := serve(t, folder, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	address, ok := strings.CutPrefix(server.url, "https://")
	if !ok {
		t.Fatalf("the server says %s", server.url)
	}
	trusted := trust(t, folder)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	createOverHTTP(t, client, server, folder)
	old := &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if connection, err := tls.Dial("tcp", address, old); err == nil {
		t.Error("TLS 1.1 is spoken")
		_ = connection.Close()
	}

	writeCertificate(t, folder, 2)
	if serial := served(t, address); serial != 2 {
		t.Errorf("certificate %d is served after a change, not 2", serial)
	}
	if err := os.WriteFile(filepath.Join(folder, "key.pem"), []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	if serial := served(t, address); serial != 2 {
		t.Errorf("certificate %d is served with a broken key, not 2", serial)
	}
	fifo := filepath.Join(folder, "cert.pem")
	if err := errors.Join(os.Remove(fifo), syscall.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	if serial := served(t, address); serial != 2 {
		t.Errorf("certificate %d is served with a FIFO in its place, not 2", serial)
	}
	if err := os.Remove(fifo); err != nil {
		t.Fatal(err)
	}
	writeCertificate(t, folder, 3)
	if serial := served(t, address); serial != 3 {
		t.Errorf("certificate %d is served after the repair, not 3", serial)
	}
	server.end(t)
	if log := server.stderr.String(); strings.Count(log, "certificate cannot be used") != 2 {
		t.Errorf("log is %s", log)
	}
	client.CloseIdleConnections()
}

func TestWrongCertificateMakesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeCertificate(t, folder, 1)
	if err := os.WriteFile(filepath.Join(folder, "key.pem"), []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := startProcess(t.Context(), folder, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
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
		server := serve(t, folder, "--listen", address)
		server.end(t)
		if strings.Contains(server.stderr.String(), "--tls-cert") != warned {
			t.Errorf("%s: output is %s", address, server.stderr)
		}
	}
}
