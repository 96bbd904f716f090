//go:build leaks || failover || soak || upgrade

package command

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// plant is a fault that is put into the program's code to see whether a test finds it.
type plant struct {
	title string
	// file is relative to the module; old occurs in it once, and new takes its place.
	file, old, new string
}

// build compiles the program with the fault, and leaves the code as it is.
func (p plant) build(t *testing.T) string {
	t.Helper()
	file := filepath.Join("../../..", p.file)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(content), p.old) != 1 {
		t.Fatalf("%q does not occur once in %s", p.old, p.file)
	}
	return buildWith(t, file, strings.Replace(string(content), p.old, p.new, 1))
}

// buildWith compiles the program with another content of a file, which need not be there.
func buildWith(t *testing.T, file, content string) string {
	t.Helper()
	file, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	changed, overlay := filepath.Join(folder, "changed"+filepath.Ext(file)), filepath.Join(folder, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
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
