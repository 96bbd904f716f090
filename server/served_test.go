package server_test

import (
	"testing"

	"go.yaml.in/yaml/v4"
)

// isSubsequence reports whether all lines are in a longer text, in the same order.
func isSubsequence(lines, of []string) bool {
	for _, line := range of {
		if len(lines) > 0 && lines[0] == line {
			lines = lines[1:]
		}
	}
	return len(lines) == 0
}

// fieldNames returns the names of all members of a document in YAML, of which JSON is a part, in their order.
func fieldNames(t *testing.T, document []byte) (names []string) {
	t.Helper()
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		t.Fatal(err)
	}
	var collect func(node *yaml.Node)
	collect = func(node *yaml.Node) {
		for i, child := range node.Content {
			if node.Kind == yaml.MappingNode && i%2 == 0 {
				names = append(names, child.Value)
			}
			collect(child)
		}
	}
	collect(&root)
	return names
}
