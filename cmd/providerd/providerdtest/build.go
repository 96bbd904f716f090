package providerdtest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Build builds the program as it is shipped. The test binary takes several times the memory and the time where it
// detects races.
func Build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "providerd")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "example.com/providerd/cmd/providerd")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, output)
	}
	return program
}

// Fault is a fault that is put into the program's code to see whether a test finds it.
type Fault struct {
	Title string
	// File is relative to the module; Old occurs in it once, and New takes its place.
	File, Old, New string
}

// Build compiles the program with the fault, and leaves the code as it is.
func (p Fault) Build(t *testing.T) string {
	t.Helper()
	content := ReadFile(t, p.File)
	if strings.Count(content, p.Old) != 1 {
		t.Fatalf("%q does not occur once in %s", p.Old, p.File)
	}
	return BuildReplacing(t, p.File, strings.Replace(content, p.Old, p.New, 1))
}

// BuildReplacing compiles the program with another content of a file of the module, which need not be there.
func BuildReplacing(t *testing.T, file, content string) string {
	t.Helper()
	folder := t.TempDir()
	changed, overlay := filepath.Join(folder, "changed"+filepath.Ext(file)), filepath.Join(folder, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{Path(t, file): changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{changed: content, overlay: string(replace)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(folder, "providerd")
	compile := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", program, "example.com/providerd/cmd/providerd")
	if output, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, output)
	}
	return program
}
