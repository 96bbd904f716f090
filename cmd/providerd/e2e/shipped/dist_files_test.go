//go:build slow

package shipped_test

import (
	"debug/buildinfo"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// distDir returns the directory that "make dist" has built.
func distDir(t *testing.T) string {
	t.Helper()
	dir := providerdtest.Path(t, "dist")
	_, err := os.Stat(filepath.Join(dir, "SHA256SUMS"))
	processtest.Need(t, err, "dist-test")
	return dir
}

// TestShippedFilesHaveDigests checks with sha256sum that SHA256SUMS is right and lists each shipped file.
func TestShippedFilesHaveDigests(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	command.Dir = distDir(t)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, output)
	}
	files, err := os.ReadDir(distDir(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := file.Name(); name != "SHA256SUMS" && !strings.Contains("\n"+string(output), "\n"+name+": OK\n") {
			t.Errorf("SHA256SUMS does not list %s", name)
		}
	}
}

// TestShippedSBOMsListModules compares each SBOM with the build information of its binary.
func TestShippedSBOMsListModules(t *testing.T) {
	t.Parallel()
	for _, processor := range []string{"amd64", "arm64"} {
		binary := filepath.Join(distDir(t), "providerd-linux-"+processor)
		build, err := buildinfo.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(binary + ".cdx.json")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		var sbom cyclonedx.BOM
		if err := cyclonedx.NewBOMDecoder(file, cyclonedx.BOMFileFormatJSON).Decode(&sbom); err != nil {
			t.Fatal(err)
		}
		want, got := map[string]string{"std": build.GoVersion}, map[string]string{}
		for _, module := range build.Deps {
			want[module.Path] = module.Version
		}
		for _, component := range *sbom.Components {
			got[component.Name] = component.Version
		}
		version := got["sqlite"]
		delete(got, "sqlite")
		if len(want) < 30 || !strings.HasPrefix(version, "3.") || !maps.Equal(got, want) {
			t.Errorf("%s: the SBOM has SQLite %s and the modules %v, want %v", processor, version, got, want)
		}
		if program := sbom.Metadata.Component; program.Name != build.Main.Path || program.Version != build.Main.Version {
			t.Errorf("%s: the SBOM is that of %s %s", processor, program.Name, program.Version)
		}
	}
}
