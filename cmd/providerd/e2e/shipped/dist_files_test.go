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

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// builtFolder has what is built for release.
func builtFolder(t *testing.T) string {
	t.Helper()
	folder := providerdtest.Path(t, "dist")
	_, err := os.Stat(filepath.Join(folder, "SHA256SUMS"))
	providerdtest.Need(t, err, "dist-test")
	return folder
}

// TestShippedFilesHaveTheirDigests lets sha256sum check each file that is shipped.
func TestShippedFilesHaveTheirDigests(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	command.Dir = builtFolder(t)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, output)
	}
	files, err := os.ReadDir(builtFolder(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := file.Name(); name != "SHA256SUMS" && !strings.Contains("\n"+string(output), "\n"+name+": OK\n") {
			t.Errorf("%s has no digest", name)
		}
	}
}

// TestShippedBillsNameModules compares each bill of materials with what its binary tells.
func TestShippedBillsNameModules(t *testing.T) {
	t.Parallel()
	for _, processor := range []string{"amd64", "arm64"} {
		binary := filepath.Join(builtFolder(t), "providerd-linux-"+processor)
		build, err := buildinfo.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(binary + ".cdx.json")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		var bill cyclonedx.BOM
		if err := cyclonedx.NewBOMDecoder(file, cyclonedx.BOMFileFormatJSON).Decode(&bill); err != nil {
			t.Fatal(err)
		}
		want, got := map[string]string{"std": build.GoVersion}, map[string]string{}
		for _, module := range build.Deps {
			want[module.Path] = module.Version
		}
		for _, component := range *bill.Components {
			got[component.Name] = component.Version
		}
		version := got["sqlite"]
		delete(got, "sqlite")
		if len(want) < 30 || !strings.HasPrefix(version, "3.") || !maps.Equal(got, want) {
			t.Errorf("%s: SQLite is %s, and the modules are %v, want %v", processor, version, got, want)
		}
		if program := bill.Metadata.Component; program.Name != build.Main.Path || program.Version != build.Main.Version {
			t.Errorf("%s: the program is %s %s", processor, program.Name, program.Version)
		}
	}
}
