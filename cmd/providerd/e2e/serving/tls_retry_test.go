package serving_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// expectProblem checks that a log reports a reason why the files cannot be loaded this many times, and no other reason.
func expectProblem(t *testing.T, log, reason string, times int) {
	t.Helper()
	if strings.Count(log, "cannot load certificate") != times || strings.Count(log, reason) != times {
		t.Errorf("%q is not logged %d times: %s", reason, times, log)
	}
}

// TestCertificateInstalledByRoot installs a certificate in two steps, as install(1) does: the files first belong to
// root, and the change of owner does not change their modification time.
func TestCertificateInstalledByRoot(t *testing.T) {
	t.Parallel()
	dir, next := providerdtest.NewOtherUserDir(t), t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	owner := strconv.Itoa(providerdtest.ServingUser)
	providerdtest.WriteCertificate(t, dir, 1)
	providerdtest.Run(t, "chown", owner, cert, key)
	server := providerdtest.ServeAsOtherUser(t, dir, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	address := strings.TrimPrefix(server.URL, "https://")

	providerdtest.WriteCertificate(t, next, 2)
	providerdtest.Run(t, "install", "--mode=600", filepath.Join(next, "cert.pem"), filepath.Join(next, "key.pem"), dir)
	for range 2 {
		if serial := providerdtest.ServedSerial(t, address); serial != 1 {
			t.Errorf("certificate %d is served while root owns the files, want 1", serial)
		}
	}
	providerdtest.Run(t, "chown", owner, cert, key)
	providerdtest.WaitUntil(t, "the new certificate is served", func() bool { return providerdtest.ServedSerial(t, address) == 2 })
	server.MustStop(t)
	expectProblem(t, server.Stderr.String(), "cert.pem: permission denied", 1)
}
