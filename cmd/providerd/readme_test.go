package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReadmeListsEveryDependency compares the README's table with the modules that the code imports itself.
func TestReadmeListsEveryDependency(t *testing.T) {
	t.Parallel()
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var direct, listed []string
	for _, match := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(string(module), -1) {
		direct = append(direct, match[1])
	}
	_, table, _ := strings.Cut(string(readme), "\n## Dependencies\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, match := range regexp.MustCompile("(?m)^\\| `(\\S+)` \\|").FindAllStringSubmatch(table, -1) {
		listed = append(listed, match[1])
	}
	if len(direct) == 0 || !slices.Equal(direct, listed) {
		t.Errorf("the README lists %v, go.mod %v", listed, direct)
	}
}
