//go:build slow

package shipped_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
)

// TestDist runs each binary that is shipped, in an environment that has nothing else: it serves, creates and is ready.
func TestDist(t *testing.T) {
	for processor, emulation := range map[string]string{"arm64": "qemu-aarch64-static", "amd64": "qemu-x86_64-static"} {
		t.Run(processor, func(t *testing.T) {
			binary := providerdtest.Path(t, "dist/providerd-linux-"+processor)
			providerdtest.NeedPrograms(t, "dist-test", binary)
			isStatic(t, binary)
			runner := []string{binary}
			if processor != runtime.GOARCH {
				providerdtest.NeedPrograms(t, "dist-test", emulation)
				runner = []string{emulation, binary}
			}
			serves(t, runner)
		})
	}
}

// isStatic demands that a binary needs no library, and no loader.
func isStatic(t *testing.T, path string) {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	libraries, err := file.ImportedLibraries()
	if err != nil || len(libraries) > 0 {
		t.Errorf("it needs %v, %v", libraries, err)
	}
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			t.Error("it needs a loader")
		}
	}
}

func serves(t *testing.T, runner []string) {
	t.Helper()
	folder := t.TempDir()
	command := func(arguments ...string) *exec.Cmd {
		made := exec.CommandContext(t.Context(), runner[0], append(runner[1:len(runner):len(runner)], arguments...)...)
		made.Dir, made.Env = folder, []string{}
		return made
	}
	server := providerdtest.ServeCommand(t, command("serve", "--listen", "127.0.0.1:0"))
	server.Create(t, contracttest.Client(t))
	for _, line := range []string{
		"version", "health --listen " + strings.TrimPrefix(server.URL, "http://"), "doctor", "provider list",
	} {
		output, err := command(strings.Fields(line)...).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", line, err, output)
		}
		t.Logf("%s: %s", line, output)
	}
	server.MustStop(t)
	if _, err := os.Stat(filepath.Join(folder, "data", "providerd.db-wal")); !os.IsNotExist(err) {
		t.Errorf("a WAL is left, %v", err)
	}
}
