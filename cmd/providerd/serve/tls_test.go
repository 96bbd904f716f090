package serve_test

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/cmd/providerd/serve"
)

// expectReason checks that a log reports a reason why the files cannot be loaded this many times, and no other reason.
func expectReason(t *testing.T, log, reason string, times int) {
	t.Helper()
	if strings.Count(log, "cannot load certificate") != times || strings.Count(log, reason) != times {
		t.Errorf("%q is not logged %d times: %s", reason, times, log)
	}
}

// handshakes gets the certificates that the server would present.
type handshakes struct {
	dir    string
	config *tls.Config
	log    bytes.Buffer
}

func newHandshakes(t *testing.T) *handshakes {
	t.Helper()
	h := &handshakes{dir: t.TempDir()}
	providerdtest.WriteCertificate(t, h.dir, 1)
	var err error
	h.config, err = serve.NewTLSConfig(h.path("cert.pem"), h.path("key.pem"), slog.New(slog.NewTextHandler(&h.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *handshakes) path(name string) string { return filepath.Join(h.dir, name) }

// expect checks the serial number of the certificate in a handshake.
func (h *handshakes) expect(t *testing.T, when string, want int64) {
	t.Helper()
	certificate, err := h.config.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if serial := certificate.Leaf.SerialNumber.Int64(); serial != want {
		t.Errorf("%s, certificate %d is presented, want %d", when, serial, want)
	}
}

// TestCertificateIsReloaded replaces a certificate, then its key, corrupts the key and restores it. The files must be
// read once per second, and each problem must be logged once.
func TestCertificateIsReloaded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, next := newHandshakes(t), t.TempDir()
		providerdtest.WriteCertificate(t, next, 2)
		replace := func(name string) {
			if err := os.Rename(filepath.Join(next, name), h.path(name)); err != nil {
				t.Fatal(err)
			}
		}
		replace("cert.pem")
		for range 3 {
			<-time.After(serve.ReloadInterval)
			h.expect(t, "with a new chain and the old key", 1)
		}
		expectReason(t, h.log.String(), "private key does not match public key", 1)
		replace("key.pem")
		<-time.After(serve.ReloadInterval - 1)
		h.expect(t, "before the files are read again", 1)
		<-time.After(1)
		h.expect(t, "with both", 2)

		key, err := os.ReadFile(h.path("key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		h.log.Reset()
		const noKey = "failed to find any PEM data in key input"
		for broken := range 2 {
			for _, text := range [][]byte{[]byte("garbage"), key} {
				if err := os.WriteFile(h.path("key.pem"), text, 0o600); err != nil {
					t.Fatal(err)
				}
				<-time.After(serve.ReloadInterval)
				h.expect(t, "with the key broken or repaired", 2)
			}
			expectReason(t, h.log.String(), noKey, broken+1)
		}
	})
}
