//go:build leaks || failover || soak

package main

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
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, p.file)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(content), p.old) != 1 {
		t.Fatalf("%q does not occur once in %s", p.old, p.file)
	}
	folder := t.TempDir()
	changed := filepath.Join(folder, "changed.go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(content), p.old, p.new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	overlayPath := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(overlayPath, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "providerd")
	compile := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlayPath, "-o", program, ".")
	if output, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, output)
	}
	return program
}
