package command

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// expectProblem demands that a log tells nothing but one reason why the files cannot be used, so many times.
func expectProblem(t *testing.T, log, reason string, times int) {
	t.Helper()
	if strings.Count(log, "certificate cannot be used") != times || strings.Count(log, reason) != times {
		t.Errorf("%q is not said %d times: %s", reason, times, log)
	}
}

// TestCertificateThatRootGivesToAnotherUser installs a certificate in two steps, as install(1) does: the files are
// root's at first, and no time of theirs changes when they get their owner.
func TestCertificateThatRootGivesToAnotherUser(t *testing.T) {
	t.Parallel()
	folder, next := newFolderOfOther(t), t.TempDir()
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	owner := strconv.Itoa(servingUser)
	writeCertificate(t, folder, 1)
	shell(t, "chown", owner, cert, key)
	server := serveAsOther(t, folder, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	address := strings.TrimPrefix(server.url, "https://")

	writeCertificate(t, next, 2)
	shell(t, "install", "--mode=600", filepath.Join(next, "cert.pem"), filepath.Join(next, "key.pem"), folder)
	for range 2 {
		if serial := served(t, address); serial != 1 {
			t.Errorf("certificate %d is served while the files are root's, not 1", serial)
		}
	}
	shell(t, "chown", owner, cert, key)
	waitUntil(t, "the new certificate is served", func() bool { return served(t, address) == 2 })
	server.end(t)
	expectProblem(t, server.stderr.String(), "cert.pem: permission denied", 1)
}

// handshakes shows what the server would to clients, in a time of its own.
type handshakes struct {
	folder string
	config *tls.Config
	log    bytes.Buffer
}

func newHandshakes(t *testing.T) *handshakes {
	t.Helper()
	h := &handshakes{folder: t.TempDir()}
	writeCertificate(t, h.folder, 1)
	var err error
	h.config, err = newTLSConfig(h.path("cert.pem"), h.path("key.pem"), slog.New(slog.NewTextHandler(&h.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *handshakes) path(name string) string { return filepath.Join(h.folder, name) }

// expect demands that a handshake shows a certificate.
func (h *handshakes) expect(t *testing.T, when string, want int64) {
	t.Helper()
	certificate, err := h.config.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if serial := certificate.Leaf.SerialNumber.Int64(); serial != want {
		t.Errorf("%s, certificate %d is shown, not %d", when, serial, want)
	}
}

// TestCertificateIsReloaded replaces a certificate, then its key, breaks the key and repairs it. The files are read once
// in a second, whatever they look like. What is wrong is said once, and again after it was right.
func TestCertificateIsReloaded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, next := newHandshakes(t), t.TempDir()
		writeCertificate(t, next, 2)
		replace := func(name string) {
			if err := os.Rename(filepath.Join(next, name), h.path(name)); err != nil {
				t.Fatal(err)
			}
		}
		replace("cert.pem")
		for range 3 {
			<-time.After(reloadInterval)
			h.expect(t, "with a new chain and the old key", 1)
		}
		expectProblem(t, h.log.String(), "private key does not match public key", 1)
		replace("key.pem")
		<-time.After(reloadInterval - 1)
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
			for _, text := range [][]byte{[]byte("rubbish"), key} {
				if err := os.WriteFile(h.path("key.pem"), text, 0o600); err != nil {
					t.Fatal(err)
				}
				<-time.After(reloadInterval)
				h.expect(t, "with the key broken or repaired", 2)
			}
			expectProblem(t, h.log.String(), noKey, broken+1)
		}
	})
}
