package main

import (
	"bytes"
	"errors"
	"fmt"
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
	for minutes := range 5 {
		written := time.Now().Add(time.Duration(minutes) * time.Minute)
		if err := errors.Join(os.Chtimes(cert, written, written), os.Chtimes(key, written, written)); err != nil {
			t.Fatal(err)
		}
		if serial := served(t, address); serial != 1 {
			t.Errorf("certificate %d is served while the files are root's, not 1", serial)
		}
	}
	shell(t, "chown", owner, cert, key)
	waitUntil(t, "the new certificate is served", func() bool { return served(t, address) == 2 })
	if err := server.stop(); err != nil {
		t.Error(err)
	}
	expectProblem(t, server.stderr.String(), "cert.pem: permission denied", 1)
}

// handshakes shows what the server would to clients, in a time of its own.
type handshakes struct {
	folder string
	show   func() (serial int64, err error)
	log    bytes.Buffer
}

func newHandshakes(t *testing.T) *handshakes {
	t.Helper()
	h := &handshakes{folder: t.TempDir()}
	writeCertificate(t, h.folder, 1)
	config, err := newTLSConfig(h.path("cert.pem"), h.path("key.pem"), slog.New(slog.NewTextHandler(&h.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	h.show = func() (int64, error) {
		certificate, err := config.GetCertificate(nil)
		if err != nil {
			return 0, err
		}
		return certificate.Leaf.SerialNumber.Int64(), nil
	}
	return h
}

func (h *handshakes) path(name string) string { return filepath.Join(h.folder, name) }

// expect demands that a handshake shows a certificate.
func (h *handshakes) expect(t *testing.T, when string, want int64) {
	t.Helper()
	if serial, err := h.show(); serial != want || err != nil {
		t.Errorf("%s, certificate %d is shown, not %d, %v", when, serial, want, err)
	}
}

// replace puts another certificate, or its key, into the place of the old one, with the time of that.
func (h *handshakes) replace(t *testing.T, next, name string) {
	t.Helper()
	before, err := os.Stat(h.path(name))
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(next, name)
	err = errors.Join(os.Chtimes(source, before.ModTime(), before.ModTime()), os.Rename(source, h.path(name)))
	if err != nil {
		t.Fatal(err)
	}
}

// TestCertificateOfTheSameTime replaces a certificate and then its key by files with the times of the old ones.
func TestCertificateOfTheSameTime(t *testing.T) {
	t.Parallel()
	h, next := newHandshakes(t), t.TempDir()
	writeCertificate(t, next, 2)
	h.replace(t, next, "cert.pem")
	for range 3 {
		h.expect(t, "with a new chain and the old key", 1)
	}
	h.replace(t, next, "key.pem")
	h.expect(t, "with both", 2)
	expectProblem(t, h.log.String(), "private key does not match public key", 1)
}

// TestUnusableCertificateIsTriedAgain has a key repaired without a trace in its file. It is read again after a while,
// and not for each handshake until then. What is wrong is said once, and again after it was right.
func TestUnusableCertificateIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandshakes(t)
		writeCertificate(t, h.folder, 2)
		key, err := os.ReadFile(h.path("key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		const noKey = "failed to find any PEM data in key input"
		stamp := time.Now()
		write := func(text []byte) {
			if err := errors.Join(os.WriteFile(h.path("key.pem"), text, 0o600), os.Chtimes(h.path("key.pem"), stamp, stamp)); err != nil {
				t.Fatal(err)
			}
		}
		rubbish := bytes.Repeat([]byte("x"), len(key))
		write(rubbish)
		for second := range 10 {
			h.expect(t, fmt.Sprintf("%d s after the key was broken", second), 1)
			<-time.After(retryPause)
		}
		h.expect(t, "before the repair", 1)
		write(key)
		<-time.After(retryPause - 1)
		h.expect(t, "within the pause", 1)
		<-time.After(1)
		h.expect(t, "after the pause", 2)
		expectProblem(t, h.log.String(), noKey, 1)

		stamp = stamp.Add(time.Second)
		write(rubbish)
		h.expect(t, "once it is broken again", 2)
		expectProblem(t, h.log.String(), noKey, 2)
	})
}
