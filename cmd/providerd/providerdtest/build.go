package providerdtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Build builds the program as it is shipped. The test binary takes several times the memory and the time under the race
// detector.
func Build(t *testing.T) string {
	t.Helper()
	return build(t, t.TempDir())
}

func build(t *testing.T, dir string, flags ...string) string {
	t.Helper()
	program := filepath.Join(dir, "providerd")
	arguments := append([]string{"build", "-ldflags", "-s -w", "-o", program}, flags...)
	Run(t, "go", append(arguments, "example.com/providerd/cmd/providerd")...)
	return program
}

// Fault is a fault injected into the program's code, which a test must find.
type Fault struct {
	Title string
	// File is relative to the module. Old occurs in it once, and is replaced by New.
	File, Old, New string
}

// Build builds the program with the fault. It does not change the source.
func (p Fault) Build(t *testing.T) string {
	t.Helper()
	return BuildReplacing(t, p.File, p.Inject(t))
}

// Inject returns the content of the file with the fault.
func (p Fault) Inject(t *testing.T) string {
	t.Helper()
	content := ReadFile(t, p.File)
	if strings.Count(content, p.Old) != 1 {
		t.Fatalf("%q does not occur once in %s", p.Old, p.File)
	}
	return strings.Replace(content, p.Old, p.New, 1)
}

// BuildReplacing builds the program with content instead of a file of the module, which need not exist.
func BuildReplacing(t *testing.T, file, content string) string {
	t.Helper()
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "changed"+filepath.Ext(file)), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{Path(t, file): changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{changed: content, overlay: string(replace)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return build(t, dir, "-overlay", overlay)
}
