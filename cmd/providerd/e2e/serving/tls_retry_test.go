package serving_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// expectProblem demands that a log tells nothing but one reason why the files cannot be used, so many times.
func expectProblem(t *testing.T, log, reason string, times int) {
	t.Helper()
	if strings.Count(log, "cannot load certificate") != times || strings.Count(log, reason) != times {
		t.Errorf("%q is not said %d times: %s", reason, times, log)
	}
}

// TestCertificateThatRootGivesToAnotherUser installs a certificate in two steps, as install(1) does: the files are
// root's at first, and no time of theirs changes when they get their owner.
func TestCertificateThatRootGivesToAnotherUser(t *testing.T) {
	t.Parallel()
	folder, next := providerdtest.NewOtherUserDir(t), t.TempDir()
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	owner := strconv.Itoa(providerdtest.ServingUser)
	providerdtest.WriteCertificate(t, folder, 1)
	providerdtest.Run(t, "chown", owner, cert, key)
	server := providerdtest.ServeAsOtherUser(t, folder, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	address := strings.TrimPrefix(server.URL, "https://")

	providerdtest.WriteCertificate(t, next, 2)
	providerdtest.Run(t, "install", "--mode=600", filepath.Join(next, "cert.pem"), filepath.Join(next, "key.pem"), folder)
	for range 2 {
		if serial := providerdtest.ServedSerial(t, address); serial != 1 {
			t.Errorf("certificate %d is served while the files are root's, not 1", serial)
		}
	}
	providerdtest.Run(t, "chown", owner, cert, key)
	providerdtest.WaitUntil(t, "the new certificate is served", func() bool { return providerdtest.ServedSerial(t, address) == 2 })
	server.MustStop(t)
	expectProblem(t, server.Stderr.String(), "cert.pem: permission denied", 1)
}
