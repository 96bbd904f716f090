//go:build slow

package shipped_test

import (
	"debug/buildinfo"
	"debug/elf"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestDist runs each shipped binary with an empty environment. It must serve, create a provider and be ready.
func TestDist(t *testing.T) {
	emulators := map[string]string{"arm64": "qemu-aarch64-static", "amd64": "qemu-x86_64-static"}
	for processor, binary := range builtBinaries(t) {
		t.Run(processor, func(t *testing.T) {
			checkStatic(t, binary)
			runner := []string{binary}
			if processor != runtime.GOARCH {
				processtest.NeedPrograms(t, "emulators", emulators[processor])
				runner = []string{emulators[processor], binary}
			}
			checkServes(t, runner)
		})
	}
}

// builtBinaries returns the path of each binary that was built, by its processor: this machine's, or each of the release.
func builtBinaries(t *testing.T) map[string]string {
	t.Helper()
	paths := processtest.Try(filepath.Glob(filepath.Join(distDir(t), "providerd-linux-*[46]"))).Must(t)
	binaries := map[string]string{}
	for _, path := range paths {
		binaries[strings.TrimPrefix(filepath.Base(path), "providerd-linux-")] = path
	}
	processtest.Expect(t, binaries[runtime.GOARCH] != "", "no binary for %s in %v", runtime.GOARCH, binaries)
	return binaries
}

func checkStatic(t *testing.T, path string) {
	file := processtest.Try(elf.Open(path)).Must(t)
	defer func() { _ = file.Close() }()
	libraries, err := file.ImportedLibraries()
	processtest.Expect(t, err == nil && len(libraries) == 0, "the binary needs the libraries %v, %v", libraries, err)
	for _, part := range file.Progs {
		processtest.Expect(t, part.Type != elf.PT_INTERP, "the binary needs a loader")
	}
}

// checkServes fails t unless a program serves and its commands work. The runner is the program or an emulator and the
// program.
func checkServes(t *testing.T, runner []string) {
	dir := t.TempDir()
	command := func(arguments ...string) *exec.Cmd {
		built := exec.CommandContext(t.Context(), runner[0], append(runner[1:len(runner):len(runner)], arguments...)...)
		built.Dir, built.Env = dir, []string{}
		return built
	}
	server := providerdtest.MustStart(t, command("serve", "--listen", "127.0.0.1:0"))
	server.Create(t, contracttest.Client(t))
	for _, line := range []string{
		"version", "health --listen " + strings.TrimPrefix(server.URL, "http://"), "doctor", "provider list",
	} {
		t.Logf("%s: %s", line, processtest.Run(t, command(strings.Fields(line)...)))
	}
	server.Stop(t)
	_, err := os.Stat(filepath.Join(dir, "data", "providerd.db-wal"))
	processtest.Expect(t, os.IsNotExist(err), "the server left its WAL behind, %v", err)
}

func distDir(t *testing.T) string {
	t.Helper()
	dir := providerdtest.Path(t, "dist")
	_, err := os.Stat(filepath.Join(dir, "SHA256SUMS"))
	processtest.Need(t, err, "make dist")
	return dir
}

func TestShippedFilesHaveDigests(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	command.Dir = distDir(t)
	output := processtest.Run(t, command)
	for _, file := range processtest.Try(os.ReadDir(distDir(t))).Must(t) {
		if name := file.Name(); name != "SHA256SUMS" && !strings.Contains("\n"+output, "\n"+name+": OK\n") {
			t.Errorf("SHA256SUMS does not list %s", name)
		}
	}
}

func TestShippedSBOMsListModules(t *testing.T) {
	t.Parallel()
	for processor, binary := range builtBinaries(t) {
		build := processtest.Try(buildinfo.ReadFile(binary)).Must(t)
		file := processtest.Try(os.Open(binary + ".cdx.json")).Must(t)
		t.Cleanup(func() { _ = file.Close() })
		var sbom cyclonedx.BOM
		processtest.Must(t, cyclonedx.NewBOMDecoder(file, cyclonedx.BOMFileFormatJSON).Decode(&sbom))
		want, got := map[string]string{"std": build.GoVersion}, map[string]string{}
		for _, module := range build.Deps {
			want[module.Path] = module.Version
		}
		for _, component := range *sbom.Components {
			got[component.Name] = component.Version
		}
		version := got["sqlite"]
		delete(got, "sqlite")
		processtest.Expect(t, len(want) >= 30 && strings.HasPrefix(version, "3.") && maps.Equal(got, want),
			"%s: the SBOM has SQLite %s and the modules %v, want %v", processor, version, got, want)
		if program := sbom.Metadata.Component; program.Name != build.Main.Path || program.Version != build.Main.Version {
			t.Errorf("%s: the SBOM is that of %s %s", processor, program.Name, program.Version)
		}
	}
}

// TestShippedFilesInstall runs the documented commands that install the shipped files in a mount namespace, and uses what
// they install.
func TestShippedFilesInstall(t *testing.T) {
	t.Parallel()
	install := strings.ReplaceAll(providerdtest.Examples(t, "service.md", 1)[0].Commands, "amd64", runtime.GOARCH)
	for name, use := range map[string]struct{ commands, want string }{
		"program":     {"providerd version", "schema version"},
		"unit":        {"$(sed -n 's/^ExecStart=\\(.*\\) serve$/\\1/p' /etc/systemd/system/providerd.service) version", "schema version"},
		"manual page": {"cat /usr/local/share/man/man1/providerd.1", ".TH PROVIDERD 1"},
		"bash": {`. /usr/local/share/bash-completion/completions/providerd
complete -p providerd
COMP_LINE="providerd ver" COMP_POINT=13 $(complete -p providerd | sed -E "s/.* -C '(.*)' providerd/\1/")`, "\nversion"},
		"zsh":  {`zsh -f "$OLDPWD/testdata/complete.zsh"`, "schema version"},
		"fish": {`fish --command 'complete --do-complete "providerd ver"'`, "version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			processtest.Contains(t, afterInstalling(t, install, use.commands), use.want)
		})
	}
}

// afterInstalling returns the output of commands that run after others have installed something. Both run in a mount
// namespace with overlays over /etc and /usr/local, so that the host does not change. The commands start in an empty
// directory, so that no file name completes a command.
func afterInstalling(t *testing.T, install, commands string) string {
	processtest.NeedRoot(t)
	distDir(t)
	processtest.NeedPrograms(t, "shells", "zsh", "fish")
	const script = `mount -t tmpfs layers "$1"
for dir in /etc /usr/local; do
	mkdir -p "$1$dir"/{upper,work}
	mount -t overlay -o "lowerdir=$dir,upperdir=$1$dir/upper,workdir=$1$dir/work" overlay "$dir"
done
(cd ../../../..; eval "$2") >&2
cd "$HOME"
eval "$3"`
	command := exec.CommandContext(t.Context(), "unshare", "--mount", "--propagation", "private",
		"bash", "-euo", "pipefail", "-c", script, "bash", t.TempDir(), install, commands)
	command.Env = append(os.Environ(), "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME="+t.TempDir())
	return providerdtest.Output(t, command)
}
