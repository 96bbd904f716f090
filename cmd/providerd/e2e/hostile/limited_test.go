//go:build slow

package hostile_test

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// serveLimited starts the program as shipped, with a memory limit of 512 MiB if this machine can limit memory.
func serveLimited(t *testing.T, dir string, arguments ...string) *providerdtest.Server {
	t.Helper()
	command := providerdtest.ServeCommand(t.Context(), dir, arguments...)
	command.Path = providerdtest.Build(t)
	line := append(limitMemory(t), command.Path)
	command.Path, command.Args = line[0], append(line, command.Args[1:]...)
	return providerdtest.MustStart(t, command)
}

// limitMemory returns a command prefix that limits memory by a control group or, if none can be created, by systemd. It
// returns nil if neither is available.
func limitMemory(t *testing.T) []string {
	t.Helper()
	const limit = "536870912"
	shell, err := exec.LookPath("sh")
	processtest.Must(t, err)
	// Do not create the file: only the kernel's own limits memory.
	const join = `[ -e "$0/$1" ] && echo $2 >"$0/$1" && echo $$ >"$0/cgroup.procs" && shift 2 && exec "$@"`
	lines := [][]string{{"/usr/bin/systemd-run", "--user", "--scope", "--quiet", "--property", "MemoryMax=" + limit, "--"}}
	for root, file := range map[string]string{
		"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max",
	} {
		group := filepath.Join(root, "providerd-test-"+rand.Text())
		if os.Mkdir(group, 0o700) == nil {
			// A group can be removed only when its processes have ended.
			t.Cleanup(func() { _ = os.Remove(group) })
			lines = slices.Insert(lines, 0, []string{shell, "-c", join, group, file, limit})
		}
	}
	for _, line := range lines {
		if exec.CommandContext(t.Context(), line[0], append(line[1:], "true")...).Run() == nil {
			return line
		}
	}
	t.Log("memory cannot be limited here; only its peak is checked")
	return nil
}

// checkPeakMemory checks that the program has never used more than 256 MiB, and logs its peak.
func checkPeakMemory(t *testing.T, server *providerdtest.Server) {
	t.Helper()
	const maxPeakKiB = 256 << 10
	peak := providerdtest.PeakKiB(t, server.Command)
	t.Logf("peak is %d MiB", peak>>10)
	if peak == 0 || peak > maxPeakKiB {
		t.Errorf("peak is %d KiB, want at most %d", peak, maxPeakKiB)
	}
}
