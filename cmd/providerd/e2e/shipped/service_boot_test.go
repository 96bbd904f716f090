//go:build slow

package shipped_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// bootedSystemd is systemd as process 1 of its own namespaces, with providerd installed as a service. It shares only the
// network with this host, and does not change its files.
type bootedSystemd struct{ pid string }

// bootSystemd starts systemd and waits until it is running.
func bootSystemd(t *testing.T) bootedSystemd {
	t.Helper()
	needNamespaces(t)
	dir := t.TempDir()
	for _, name := range []string{"groups", "layers", "root"} {
		processtest.Must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	writeUnits(t, filepath.Join(dir, "units"))
	manager := providerdtest.ListenAsManager(t, filepath.Join(dir, "notify"))
	start, err := processtest.Start(inNamespace(t, "start", dir))
	processtest.Must(t, err)
	t.Cleanup(func() { stopSystemd(t, start, dir) })
	go func() {
		_ = start.Wait()
		_ = manager.Close()
	}()
	if err := awaitBoot(manager); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		t.Fatalf("systemd does not start: %v: %s%s%s", err, start.Stdout, start.Stderr, log)
	}
	child, err := childOf(start.Command.Process.Pid)
	processtest.Must(t, err)
	return bootedSystemd{pid: strconv.Itoa(child)}
}

// needNamespaces skips t unless systemd can be started in namespaces, which takes root and fails in most containers.
func needNamespaces(t *testing.T) {
	t.Helper()
	processtest.NeedPrograms(t, "systemd", "systemd-analyze")
	output, err := exec.CommandContext(t.Context(), "testdata/boot-systemd", "probe").CombinedOutput()
	if err != nil {
		processtest.Need(t, fmt.Errorf("systemd cannot be started here: %w: %s", err, output), "")
	}
}

// awaitBoot waits until systemd reports that it is running. It then closes the socket, because systemd would wait for a
// reader. If the socket is closed earlier, systemd has exited.
func awaitBoot(manager *net.UnixConn) error {
	if err := manager.SetReadDeadline(time.Now().Add(processtest.Timeout)); err != nil {
		return err
	}
	message := make([]byte, 1024)
	for {
		length, err := manager.Read(message)
		if errors.Is(err, net.ErrClosed) {
			return errors.New("it has exited")
		}
		if err != nil {
			return err
		}
		if strings.Contains(string(message[:length]), "READY=1") {
			return manager.Close()
		}
	}
}

// stopSystemd kills process 1, and with it all processes of its namespace. It then removes the control groups.
func stopSystemd(t *testing.T, start *processtest.Child, dir string) {
	t.Helper()
	if child, err := childOf(start.Command.Process.Pid); err == nil && !start.HasEnded() {
		_ = syscall.Kill(child, syscall.SIGKILL)
		_ = start.Wait()
	}
	_ = start.Kill()
	if output, err := inNamespace(t, "remove", dir).CombinedOutput(); err != nil {
		t.Errorf("remove the control groups: %v: %s", err, output)
	}
}

// childOf returns the only child of a process.
func childOf(parent int) (int, error) {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", parent))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(children)))
}

// inNamespace returns a command that runs a part of the script boot-systemd in its own mount namespace.
func inNamespace(t *testing.T, part, dir string) *exec.Cmd {
	t.Helper()
	script, err := filepath.Abs("testdata/boot-systemd")
	processtest.Must(t, err)
	return exec.CommandContext(context.WithoutCancel(t.Context()), "unshare", "--mount", "--propagation", "private",
		script, part, dir, strconv.Itoa(os.Getpid()), os.Args[0])
}

// writeUnits writes the units for systemd: the shipped unit with shorter timeouts and a free port, the journal, and the
// targets that services depend on.
func writeUnits(t *testing.T, dir string) {
	t.Helper()
	for _, path := range []string{"providerd.service.d", "sysinit.target.wants"} {
		processtest.Must(t, os.MkdirAll(filepath.Join(dir, path), 0o755))
	}
	const settings = "[Service]\nEnvironment=PROVIDERD_LISTEN=127.0.0.1:0 PROVIDERD_OPS_LISTEN=127.0.0.1:0\n" +
		"WatchdogSec=1s\nTimeoutStopSec=2s\nTimeoutAbortSec=1s\nRestartSec=100ms\n"
	processtest.Must(t, os.WriteFile(filepath.Join(dir, "providerd.service.d/test.conf"), []byte(settings), 0o600))
	for _, unit := range []string{
		providerdtest.Path(t, "cmd/providerd/deploy/providerd.service"),
		providerdtest.Path(t, "cmd/providerd/deploy/providerd-backup.service"), "/lib/systemd/system/systemd-journald.service", "/lib/systemd/system/systemd-journald.socket",
		"/lib/systemd/system/basic.target", "/lib/systemd/system/sysinit.target", "/lib/systemd/system/shutdown.target",
	} {
		providerdtest.Run(t, "install", "--mode=644", "--target-directory="+dir, unit)
	}
	processtest.Must(t, os.Symlink("../systemd-journald.service", filepath.Join(dir, "sysinit.target.wants/systemd-journald.service")))
}

// command returns a command that bash runs as root in the namespaces of systemd.
func (m bootedSystemd) command(t *testing.T, text string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), "nsenter", "--target", m.pid, "--all", "--", "bash", "-euc", text)
}

// run runs commands and returns their output.
func (m bootedSystemd) run(t *testing.T, commands string) string {
	t.Helper()
	output, err := m.command(t, commands).CombinedOutput()
	if err != nil {
		journal, _ := m.command(t, "journalctl --no-pager --output cat").CombinedOutput()
		t.Fatalf("%s: %v: %s\n%s", commands, err, output, journal)
	}
	return strings.TrimSpace(string(output))
}

// property returns a property of the service.
func (m bootedSystemd) property(t *testing.T, name string) string {
	t.Helper()
	return m.run(t, "systemctl show --property "+name+" --value providerd")
}

// path returns the path on this host of a file in the namespaces of systemd.
func (m bootedSystemd) path(path string) string { return "/proc/" + m.pid + "/root" + path }
