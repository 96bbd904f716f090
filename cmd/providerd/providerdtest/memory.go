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
	// memoryOfContainer is what a container gives the program, in bytes.
	memoryOfContainer = 512 << 20
	// maxPeakKiB is how much of it the program may ever use.
	maxPeakKiB = 256 << 10
)

// ServeLimited starts the program as shipped in a folder, in a memory of 512 MiB where this machine lets one limit it.
func ServeLimited(t *testing.T, folder string, arguments ...string) *Server {
	t.Helper()
	line := append(limitMemory(t), Build(t), "serve", "--listen", "127.0.0.1:0")
	command := exec.CommandContext(t.Context(), line[0], append(line[1:], arguments...)...)
	command.Dir = folder
	server := ServeCommand(t, command)
	// Where the test has stopped it, this does nothing.
	t.Cleanup(func() { _ = server.Kill() })
	return server
}

// limitMemory returns the words to put before a command to limit its memory: by a control group or, where none can be
// made, by systemd. Where that cannot be had either there are none, and the peak is watched alone.
func limitMemory(t *testing.T) []string {
	t.Helper()
	for _, version := range []struct{ root, file string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"},
	} {
		group, err := os.MkdirTemp(version.root, "providerd-test-") //nolint:usetesting // A group is no ordinary folder.
		if err != nil {
			continue
		}
		// A group can be removed once its processes have ended.
		t.Cleanup(func() { _ = os.Remove(group) })
		if err := limitGroup(group, version.file); err == nil {
			return []string{"sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, group}
		}
	}
	limit := "MemoryMax=" + strconv.Itoa(memoryOfContainer)
	for _, manager := range []string{"--system", "--user"} {
		words := []string{"systemd-run", manager, "--scope", "--quiet", "--property", limit, "--"}
		if exec.CommandContext(t.Context(), words[0], append(words[1:], "true")...).Run() == nil {
			return words
		}
	}
	t.Log("memory cannot be limited here; its peak is watched")
	return nil
}

// limitGroup sets the limit, and finds out whether a process can join.
func limitGroup(group, file string) error {
	// Only a file that the kernel has put there limits anything.
	limit, err := os.OpenFile(filepath.Join(group, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = limit.Close() }()
	if _, err := fmt.Fprint(limit, memoryOfContainer); err != nil {
		return err
	}
	join := `echo $$ >"$0/cgroup.procs"`
	return exec.CommandContext(context.Background(), "sh", "-c", join, group).Run()
}

// CheckPeakMemory demands that the program has never used more memory than it may, and says how much that was.
func CheckPeakMemory(t *testing.T, server *Server) {
	t.Helper()
	peak := PeakKiB(t, server.Command)
	t.Logf("peak is %d MiB", peak>>10)
	if peak == 0 || peak > maxPeakKiB {
		t.Errorf("peak is %d KiB, want at most %d", peak, maxPeakKiB)
	}
}

// PeakKiB is the most memory that a command has used so far, or 0 where it has ended: what the system tells of it then
// includes the process that it was started from.
func PeakKiB(t *testing.T, command *exec.Cmd) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", command.Process.Pid))
	if err != nil || !strings.Contains(string(status), "VmHWM:") {
		return 0
	}
	return NumberAfter(t, string(status), "VmHWM:")
}

// NumberAfter returns the first number after a word in a text.
func NumberAfter(t *testing.T, text, word string) int {
	t.Helper()
	_, rest, _ := strings.Cut(text, word)
	number, err := strconv.Atoi(regexp.MustCompile(`[0-9]+`).FindString(rest))
	if err != nil {
		t.Fatalf("no number follows %s in %.1000s", word, text)
	}
	return number
}
