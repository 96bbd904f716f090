//go:build slow

package shipped_test

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
)

// The folder of the service, as systemd's processes see it: /var/lib/providerd leads there.
const serviceFolder = "/var/lib/private/providerd"

// The README sets this once for all commands of an operator.
const databaseOfService = "PROVIDERD_DATABASE=sqlite:/var/lib/providerd/providerd.db"

// service is providerd under systemd. Its folder has a folder "data", which is that of the service.
type service struct {
	bootedSystemd
	folder string
	client *http.Client
}

// startService starts the unit as it stands under systemd.
func startService(t *testing.T, client *http.Client) service {
	t.Helper()
	s := service{bootedSystemd: bootSystemd(t), folder: t.TempDir(), client: client}
	if err := os.Symlink(s.path(serviceFolder), filepath.Join(s.folder, "data")); err != nil {
		t.Fatal(err)
	}
	s.run(t, "systemctl start providerd")
	return s
}

// process is the server that runs now.
func (s service) process(t *testing.T) *providerdtest.Server {
	t.Helper()
	const serving = "serving on "
	providerdtest.WaitUntil(t, "the service serves", func() bool {
		return s.property(t, "ActiveState") == "active" && strings.HasPrefix(s.property(t, "StatusText"), serving)
	})
	return &providerdtest.Server{URL: strings.TrimPrefix(s.property(t, "StatusText"), serving), Dir: s.folder}
}

// expectCreates demands that the service is ready, and creates.
func (s service) expectCreates(t *testing.T) {
	t.Helper()
	s.process(t).Create(t, s.client)
}

// TestServiceUnderSystemd operates the unit as the README says.
func TestServiceUnderSystemd(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	providerdtest.WriteCertificate(t, first, 1)
	providerdtest.WriteCertificate(t, second, 2)
	trusting := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: providerdtest.CertPool(t, first, second)}}
	s := startService(t, contracttest.ClientOver(t, trusting))
	examples := providerdtest.ReadmeExamples(t, "As a service", 3)
	operate, install, restore := examples[0], examples[1], examples[2]

	s.expectConfined(t)
	s.expectCreates(t)
	s.run(t, operate)
	s.run(t, databaseOfService+" providerd doctor")
	s.expectRestart(t, "KILL", "Main process exited, code=killed, status=9/KILL")
	s.expectRestart(t, "STOP", "Failed with result 'watchdog'.")
	s.expectDrained(t)
	s.expectCertificates(t, install, first, second)
	s.run(t, restore)
	s.expectCreates(t)

	// One was there when the backup was made, and one came after it was restored.
	if count := s.run(t, databaseOfService+" providerd provider list --output json | grep --count pk"); count != "2" {
		t.Errorf("%s records are stored, want 2", count)
	}
	s.expectPrivateFiles(t)
}

// expectConfined demands that the process has a user of its own and no privileges, dumps no core, and gets no more
// memory than it may.
func (s service) expectConfined(t *testing.T) {
	t.Helper()
	for name, want := range map[string]string{"LimitCORE": "0", "MemoryMax": "536870912"} {
		if got := s.property(t, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	status := s.run(t, "cat /proc/$(systemctl show --property MainPID --value providerd)/status")
	for _, line := range []string{
		`Uid:(\t6[1-5]\d{3}){4}`, `CapPrm:\t0{16}`, `CapEff:\t0{16}`, `CapBnd:\t0{16}`, `CapAmb:\t0{16}`, `NoNewPrivs:\t1`, `Seccomp:\t2`,
	} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(status) {
			t.Errorf("no line of the process is %s: %s", line, status)
		}
	}
}

// expectRestart sends a signal, and demands that systemd starts the service again, and says why.
func (s service) expectRestart(t *testing.T, signal, reason string) {
	t.Helper()
	before := s.property(t, "NRestarts")
	s.run(t, "systemctl kill --signal="+signal+" providerd")
	providerdtest.WaitUntil(t, "systemd restarts the service", func() bool { return s.property(t, "NRestarts") != before })
	s.expectCreates(t)
	if journal := s.run(t, "journalctl --no-pager --output cat"); !strings.Contains(journal, reason) {
		t.Errorf("the journal has no %q: %s", reason, journal)
	}
}

// expectDrained stops the service, which first is not ready and goes on creating, and starts it again. Its drain delay is
// longer than TimeoutStopSec.
func (s service) expectDrained(t *testing.T) {
	t.Helper()
	server := s.process(t)
	s.run(t, "systemctl stop --no-block providerd")
	providerdtest.WaitUntil(t, "the service drains", func() bool { return strings.HasPrefix(s.property(t, "StatusText"), "draining") })
	if status, readiness := providerdtest.Readiness(t, server); status != http.StatusServiceUnavailable || readiness != "draining" {
		t.Errorf("in its drain delay, /readyz is %d, %s", status, readiness)
	}
	server.Create(t, s.client)
	providerdtest.WaitUntil(t, "the service ends", func() bool { return s.property(t, "ActiveState") != "deactivating" })
	if result := s.property(t, "Result"); result != "success" {
		t.Errorf("the service ends with %s", result)
	}
	s.run(t, "systemctl start providerd")
	s.expectCreates(t)
}

// expectCertificates gives the service a certificate, and then another one, which takes no restart.
func (s service) expectCertificates(t *testing.T, install, first, second string) {
	t.Helper()
	put := func(certificate string) {
		providerdtest.Run(t, "install", "--mode=600", filepath.Join(certificate, "key.pem"), s.path("/root/key.pem"))
		providerdtest.Run(t, "install", "--mode=600", filepath.Join(certificate, "cert.pem"), s.path("/root/chain.pem"))
		s.run(t, "cd /root\n"+install)
	}
	put(first)
	s.run(t, `mkdir /etc/providerd
cat >/etc/providerd/environment <<end
PROVIDERD_TLS_CERT=/var/lib/providerd/chain.pem
PROVIDERD_TLS_KEY=/var/lib/providerd/key.pem
end
systemctl restart providerd`)
	address, before := strings.TrimPrefix(s.process(t).URL, "https://"), s.property(t, "MainPID")
	if serial := providerdtest.ServedSerial(t, address); serial != 1 {
		t.Errorf("certificate %d is served, not 1", serial)
	}
	put(second)
	if serial := providerdtest.ServedSerial(t, address); serial != 2 {
		t.Errorf("certificate %d is served after a change, not 2", serial)
	}
	s.expectCreates(t)
	if after := s.property(t, "MainPID"); after != before {
		t.Errorf("process %s serves in place of %s", after, before)
	}
}

// expectPrivateFiles demands that the folder of the service and all in it belong to its user alone.
func (s service) expectPrivateFiles(t *testing.T) {
	t.Helper()
	user := s.run(t, "stat --format=%u "+serviceFolder)
	if files := s.run(t, "find "+serviceFolder+` -printf '%U %y %m\n' | sort --unique`); files != user+" d 700\n"+user+" f 600" {
		t.Errorf("of user %s, the files have %q", user, files)
	}
}
