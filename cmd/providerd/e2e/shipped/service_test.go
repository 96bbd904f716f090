//go:build slow

package shipped_test

import (
	"crypto/tls"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// serviceDir is what /var/lib/providerd links to.
const serviceDir = "/var/lib/private/providerd"

// databaseOfService selects the database of the unit for commands of an operator.
const databaseOfService = "PROVIDERD_DATABASE=sqlite:/var/lib/providerd/providerd.db"

// service is providerd under a systemd that is process 1 of its own namespaces, and shares only the network with this
// host. Its directory has a link "data" to the directory of the service.
type service struct {
	pid, dir string
	client   *http.Client
}

// command returns a command that bash runs as root in the namespaces of systemd.
func (s service) command(t *testing.T, text string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), "nsenter", "--target", s.pid, "--all", "--", "bash", "-euc", text)
}

func (s service) run(t *testing.T, commands string) string {
	t.Helper()
	output, err := s.command(t, commands).CombinedOutput()
	if err != nil {
		journal, _ := s.command(t, "journalctl --no-pager --output cat").CombinedOutput()
		t.Fatalf("%s: %v: %s\n%s", commands, err, output, journal)
	}
	return strings.TrimSpace(string(output))
}

func (s service) property(t *testing.T, name string) string {
	t.Helper()
	return s.run(t, "systemctl show --property "+name+" --value providerd")
}

// path returns the path on this host of a file in the namespaces of systemd.
func (s service) path(path string) string { return "/proc/" + s.pid + "/root" + path }

func (s service) process(t *testing.T) *providerdtest.Server {
	t.Helper()
	const serving = "serving on "
	processtest.WaitUntil(t, "the service is serving", func() bool {
		return s.property(t, "ActiveState") == "active" && strings.HasPrefix(s.property(t, "StatusText"), serving)
	})
	return &providerdtest.Server{URL: strings.TrimPrefix(s.property(t, "StatusText"), serving), Dir: s.dir}
}

func (s service) expectCreates(t *testing.T) {
	t.Helper()
	s.process(t).Create(t, s.client)
}

func TestServiceUnderSystemd(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	providerdtest.WriteCertificate(t, first, 1)
	providerdtest.WriteCertificate(t, second, 2)
	trusting := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: providerdtest.CertPool(t, first, second)}}
	s := service{pid: bootSystemd(t), dir: t.TempDir(), client: contracttest.ClientOver(t, trusting)}
	processtest.Must(t, os.Symlink(s.path(serviceDir), filepath.Join(s.dir, "data")))
	s.run(t, "systemctl start providerd")
	examples, restore := providerdtest.Examples(t, "service.md", 3), providerdtest.Examples(t, "backup.md", 1)[0].Commands
	enable, operate, install := examples[0].Commands, examples[1].Commands, examples[2].Commands
	upgrade := providerdtest.Examples(t, "upgrading.md", 1)[0].Commands

	s.expectConfined(t)
	s.expectCreates(t)
	s.checkRunbooks(t)
	s.run(t, operate)
	s.expectBackup(t)
	s.run(t, databaseOfService+" providerd doctor")
	s.expectRestart(t, "KILL", "Main process exited, code=killed, status=9/KILL")
	s.expectRestart(t, "STOP", "Failed with result 'watchdog'.")
	s.expectDrained(t)
	s.expectCertificates(t, install, first, second)
	s.run(t, restore)
	s.expectCreates(t)
	s.run(t, enable)
	for range 2 {
		s.run(t, "cd /root\ncp /usr/local/bin/providerd providerd-linux-amd64\n"+upgrade)
		s.expectCreates(t)
	}

	// One provider was in the backup, and three were created after the restore.
	stored := s.run(t, databaseOfService+" providerd provider list --output json | grep --count pk")
	processtest.Equal(t, stored, "4", "stored providers")
	s.expectPrivateFiles(t)
}

// expectConfined checks that the process runs as a dynamic user without privileges or core dumps, in limited memory.
func (s service) expectConfined(t *testing.T) {
	for name, want := range map[string]string{"LimitCORE": "0", "MemoryMax": "536870912"} {
		processtest.Equal(t, s.property(t, name), want, "%s", name)
	}
	status := s.run(t, "cat /proc/$(systemctl show --property MainPID --value providerd)/status")
	for _, line := range []string{
		`Uid:(\t6[1-5]\d{3}){4}`, `CapPrm:\t0{16}`, `CapEff:\t0{16}`, `CapBnd:\t0{16}`, `CapAmb:\t0{16}`, `NoNewPrivs:\t1`, `Seccomp:\t2`,
	} {
		processtest.Expect(t, regexp.MustCompile(`(?m)^`+line+`$`).MatchString(status),
			"the status of the process has no line %s: %s", line, status)
	}
}

func (s service) expectBackup(t *testing.T) {
	const backup = "cd /var/lib/providerd-backup && grep --quiet '^providerd_backup_success 1$' /run/providerd-backup/providerd-backup.prom && " +
		"cp providerd-*.db /tmp/copy.db && providerd provider list --database /tmp/copy.db --keyset /var/lib/providerd/keyset.json"
	s.run(t, "systemctl start providerd-backup")
	processtest.Contains(t, s.run(t, backup), "oauth2")
}

func (s service) expectRestart(t *testing.T, signal, reason string) {
	t.Helper()
	before := s.property(t, "NRestarts")
	s.run(t, "systemctl kill --signal="+signal+" providerd")
	processtest.WaitUntil(t, "systemd restarts the service", func() bool { return s.property(t, "NRestarts") != before })
	s.expectCreates(t)
	processtest.Contains(t, s.run(t, "journalctl --no-pager --output cat"), reason)
}

// expectDrained restarts the service, which must still create while it drains, longer than TimeoutStopSec.
func (s service) expectDrained(t *testing.T) {
	server := s.process(t)
	s.run(t, "systemctl stop --no-block providerd")
	processtest.WaitUntil(t, "the service is draining", func() bool { return strings.HasPrefix(s.property(t, "StatusText"), "draining") })
	server.ExpectReadiness(t, "draining")
	server.Create(t, s.client)
	processtest.WaitUntil(t, "the service has stopped", func() bool { return s.property(t, "ActiveState") != "deactivating" })
	processtest.Equal(t, s.property(t, "Result"), "success", "result of the service")
	s.run(t, "systemctl start providerd")
	s.expectCreates(t)
}

// expectCertificates installs a certificate, and then another one, which must be served without a restart.
func (s service) expectCertificates(t *testing.T, install, first, second string) {
	installFrom := func(dir string) {
		providerdtest.Run(t, "install", "--mode=600", filepath.Join(dir, "key.pem"), s.path("/root/key.pem"))
		providerdtest.Run(t, "install", "--mode=600", filepath.Join(dir, "cert.pem"), s.path("/root/chain.pem"))
		s.run(t, "cd /root\n"+install)
	}
	installFrom(first)
	s.run(t, `mkdir /etc/providerd
cat >/etc/providerd/environment <<end
PROVIDERD_TLS_CERT=/var/lib/providerd/chain.pem
PROVIDERD_TLS_KEY=/var/lib/providerd/key.pem
end
systemctl restart providerd`)
	address, before := strings.TrimPrefix(s.process(t).URL, "https://"), s.property(t, "MainPID")
	processtest.Equal(t, providerdtest.ServedSerial(t, address), 1, "serial number")
	installFrom(second)
	processtest.Equal(t, providerdtest.ServedSerial(t, address), 2, "serial number after the change")
	s.expectCreates(t)
	processtest.Equal(t, s.property(t, "MainPID"), before, "process")
}

func (s service) expectPrivateFiles(t *testing.T) {
	user := s.run(t, "stat --format=%u "+serviceDir)
	processtest.Equal(t, s.run(t, "find "+serviceDir+` -printf '%U %y %m\n' | sort --unique`),
		user+" d 700\n"+user+" f 600", "owners, types and modes")
}

// checkRunbooks runs the runbooks' commands, except PostgreSQL's, with the real systemctl and journalctl.
func (s service) checkRunbooks(t *testing.T) {
	refused := regexp.MustCompile(`(?i)command not found|failed to|invalid option|unrecognized option`)
	postgres := regexp.MustCompile(`(?m)^psql .*\n`)
	blocks := providerdtest.CodeBlocks(readRunbook(t), "sh")
	for _, commands := range blocks[1:] {
		// A runbook may restart the service, which then has another port.
		ops := providerdtest.FindOpsURL(s.run(t, "journalctl --unit providerd --output cat --reverse"))
		commands = strings.ReplaceAll(postgres.ReplaceAllString(commands, ""), "http://127.0.0.1:9464", ops)
		output := s.run(t, "set +e; cd \"$(mktemp --directory)\"\n"+blocks[0]+commands+"true")
		processtest.Expect(t, !refused.MatchString(output), "%s: %s", commands, output)
		processtest.Expect(t, !strings.Contains(commands, "/healthz") || strings.HasSuffix(output, `{"status":"ok"}`),
			"%s: %s", commands, output)
		s.process(t)
	}
	processtest.Expect(t, len(blocks) >= 18, "ran %d blocks, want at least 17", len(blocks)-1)
	s.process(t).ExpectReadiness(t, "ready")
}
