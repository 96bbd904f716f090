//go:build slow

package shipped_test

import (
	"context"
	"fmt"
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

// bootSystemd starts systemd as process 1 of its own namespaces, with providerd installed as a service, and waits until
// it is running. It does not change the files of this host. It takes root, and fails in most containers.
func bootSystemd(t *testing.T) (pid string) {
	processtest.NeedPrograms(t, "systemd", "systemd-analyze")
	output, err := exec.CommandContext(t.Context(), "testdata/boot-systemd", "probe").CombinedOutput()
	if err != nil {
		processtest.Need(t, fmt.Errorf("systemd cannot be started here: %w: %s", err, output), "")
	}
	dir := t.TempDir()
	for _, name := range []string{"groups", "layers", "root"} {
		processtest.Must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	writeUnits(t, filepath.Join(dir, "units"))
	manager := providerdtest.ListenAsManager(t, filepath.Join(dir, "notify"))
	start := processtest.Try(processtest.Start(inNamespace(t, "start", dir))).Must(t)
	t.Cleanup(func() { stopSystemd(t, start, dir) })
	go func() { _ = start.Wait(); _ = manager.Close() }()
	processtest.Must(t, manager.SetReadDeadline(time.Now().Add(processtest.Timeout)))
	for state, message := "", make([]byte, 1024); !strings.Contains(state, "READY=1"); {
		length, err := manager.Read(message)
		if err != nil {
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Fatalf("systemd does not start, or has exited: %v: %s%s%s", err, start.Stdout, start.Stderr, log)
		}
		state = string(message[:length])
	}
	// Otherwise systemd would wait for a reader.
	_ = manager.Close()
	return strconv.Itoa(processtest.Try(childOf(start.Command.Process.Pid)).Must(t))
}

// stopSystemd kills process 1, and with it all processes of its namespace. It then removes the control groups.
func stopSystemd(t *testing.T, start *processtest.Child, dir string) {
	if child, err := childOf(start.Command.Process.Pid); err == nil && !start.HasEnded() {
		_ = syscall.Kill(child, syscall.SIGKILL)
		_ = start.Wait()
	}
	_ = start.Kill()
	processtest.Run(t, inNamespace(t, "remove", dir))
}

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
	script := processtest.Try(filepath.Abs("testdata/boot-systemd")).Must(t)
	return exec.CommandContext(context.WithoutCancel(t.Context()), "unshare", "--mount", "--propagation", "private",
		script, part, dir, strconv.Itoa(os.Getpid()), os.Args[0])
}

// writeUnits writes the units for systemd: the shipped unit with shorter timeouts and a free port, the journal, and the
// targets that services depend on.
func writeUnits(t *testing.T, dir string) {
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

// TestServiceUnit checks the unit files with systemd-analyze, and that the exposure level is at most 1.5 of 10.
func TestServiceUnit(t *testing.T) {
	t.Parallel()
	processtest.NeedPrograms(t, "systemd", "systemd-analyze")
	program := processtest.Try(os.Executable()).Must(t)
	dir := t.TempDir()
	processtest.Must(t, os.Mkdir(filepath.Join(dir, "providerd-backup.service.d"), 0o700))
	place := strings.NewReplacer("/usr/local/bin/providerd", program, "/usr/bin/rsync", program)
	for name, path := range map[string]string{
		"providerd.service": "providerd.service", "providerd-audit.service": "providerd-audit.service",
		"providerd-backup.service": "providerd-backup.service", "providerd-backup.timer": "providerd-backup.timer",
		"providerd-backup-ship.conf": "providerd-backup.service.d/providerd-backup-ship.conf",
	} {
		text := providerdtest.ReadFile(t, "cmd/providerd/deploy/"+name)
		processtest.Must(t, os.WriteFile(filepath.Join(dir, path), []byte(place.Replace(text)), 0o600))
	}
	unit := filepath.Join(dir, "providerd.service")
	for _, arguments := range [][]string{
		{"verify", "--man=no", unit, filepath.Join(dir, "providerd-backup.service"), filepath.Join(dir, "providerd-backup.timer"), filepath.Join(dir, "providerd-audit.service")},
		{"security", "--no-pager", "--offline=true", "--threshold=15", unit},
	} {
		output := processtest.Run(t, exec.CommandContext(t.Context(), "systemd-analyze", arguments...))
		processtest.Expect(t, !strings.Contains(output, dir), "systemd-analyze %s: %s", arguments[0], output)
	}
}
