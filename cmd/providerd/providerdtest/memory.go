package providerdtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	// containerMemory is the memory limit of a container, in bytes.
	containerMemory = 512 << 20
	// maxPeakKiB is how much of it the program may use.
	maxPeakKiB = 256 << 10
)

// ServeLimited starts the program as shipped, with a memory limit of 512 MiB if this machine can limit memory.
func ServeLimited(t *testing.T, dir string, arguments ...string) *Server {
	t.Helper()
	line := append(limitMemory(t), Build(t), "serve", "--listen", "127.0.0.1:0")
	command := exec.CommandContext(t.Context(), line[0], append(line[1:], arguments...)...)
	command.Dir = dir
	return MustStart(t, command)
}

// limitMemory returns a command prefix that limits memory by a control group or, if none can be created, by systemd. It
// returns nil if neither is available.
func limitMemory(t *testing.T) []string {
	t.Helper()
	for _, version := range []struct{ root, file string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"},
	} {
		group, err := os.MkdirTemp(version.root, "providerd-test-") //nolint:usetesting // A control group must be below root.
		if err != nil {
			continue
		}
		// A group can be removed only when its processes have ended.
		t.Cleanup(func() { _ = os.Remove(group) })
		if err := limitGroup(group, version.file); err == nil {
			return []string{"sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, group}
		}
	}
	limit := "MemoryMax=" + strconv.Itoa(containerMemory)
	for _, manager := range []string{"--system", "--user"} {
		words := []string{"systemd-run", manager, "--scope", "--quiet", "--property", limit, "--"}
		if exec.CommandContext(t.Context(), words[0], append(words[1:], "true")...).Run() == nil {
			return words
		}
	}
	t.Log("memory cannot be limited here; only its peak is checked")
	return nil
}

// limitGroup sets the limit, and checks that a process can join.
func limitGroup(group, file string) error {
	// Do not create the file: only the kernel's own limits memory.
	limit, err := os.OpenFile(filepath.Join(group, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = limit.Close() }()
	if _, err := fmt.Fprint(limit, containerMemory); err != nil {
		return err
	}
	join := `echo $$ >"$0/cgroup.procs"`
	return exec.CommandContext(context.Background(), "sh", "-c", join, group).Run()
}

// CheckPeakMemory checks that the program has never used more than 256 MiB, and logs its peak.
func CheckPeakMemory(t *testing.T, server *Server) {
	t.Helper()
	peak := PeakKiB(t, server.Command)
	t.Logf("peak is %d MiB", peak>>10)
	if peak == 0 || peak > maxPeakKiB {
		t.Errorf("peak is %d KiB, want at most %d", peak, maxPeakKiB)
	}
}

// PeakKiB returns the peak memory of a command, or 0 if it has ended: what the system reports then includes its parent
// process.
func PeakKiB(t *testing.T, command *exec.Cmd) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", command.Process.Pid))
	if err != nil || !strings.Contains(string(status), "VmHWM:") {
		return 0
	}
	return NumberAfter(t, string(status), "VmHWM:")
}

// NumberAfter returns the first number after word in text.
func NumberAfter(t *testing.T, text, word string) int {
	t.Helper()
	_, rest, _ := strings.Cut(text, word)
	number, err := strconv.Atoi(regexp.MustCompile(`[0-9]+`).FindString(rest))
	if err != nil {
		t.Fatalf("no number follows %s in %.1000s", word, text)
	}
	return number
}
