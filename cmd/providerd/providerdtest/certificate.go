package providerdtest

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
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/providerd/store/storetest/processtest"
)

// WriteCertificate writes a self-signed certificate for 127.0.0.1 and 127.0.0.2, and its key, to dir.
func WriteCertificate(t *testing.T, dir string, serial int64) {
	t.Helper()
	WriteCertificateValid(t, dir, serial, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
}

// WriteCertificateValid is WriteCertificate with a validity.
func WriteCertificateValid(t *testing.T, dir string, serial int64, from, to time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	processtest.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 0, 2)},
		NotBefore: from, NotAfter: to,
	}
	certificate, certificateErr := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	private, keyErr := x509.MarshalPKCS8PrivateKey(key)
	processtest.Must(t, errors.Join(certificateErr, keyErr))
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: certificate},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: private},
	} {
		processtest.Must(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
}

// ServedSerial returns the serial number of the certificate that the server presents after its next reload.
func ServedSerial(t *testing.T, address string) int64 {
	t.Helper()
	<-time.After(time.Second)
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	processtest.Must(t, err)
	defer func() { _ = connection.Close() }()
	return connection.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// CertPool returns a pool of the certificates in directories.
func CertPool(t *testing.T, dirs ...string) *x509.CertPool {
	t.Helper()
	trusted := x509.NewCertPool()
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "cert.pem"))
		if err != nil || !trusted.AppendCertsFromPEM(text) {
			t.Fatal(err)
		}
	}
	return trusted
}
