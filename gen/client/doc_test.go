package client_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The package documentation describes the hand-written API; the comment of the generator is not in it.
func TestPackageDocumentation(t *testing.T) {
	t.Parallel()
	text, err := exec.CommandContext(t.Context(), "go", "doc").Output()
	if err != nil || !strings.Contains(string(text), "\nPackage client is the Go SDK of providerd. New returns Providers") ||
		strings.Count(string(text), "Package client") != 1 || strings.Contains(string(text), "oapi-codegen") {
		t.Errorf("the documentation is %v %s", err, text)
	}
}

// Every code block of the README is part of an example, and examples run.
func TestBlocksOfTheREADMEAreRun(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(readme), "```go\n")[1:]
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```\n")
		if !strings.Contains(string(examples), "\t"+strings.ReplaceAll(strings.TrimSpace(block), "\n", "\n\t")) {
			t.Errorf("no example has\n%s", block)
		}
	}
	if len(blocks) == 0 {
		t.Error("the README has no blocks")
	}
}
