package client_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// parse parses a file of the package.
func parse(t *testing.T, files *token.FileSet, name string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// constants returns the values of a file's constants of the named type; of untyped ones for "".
func constants(t *testing.T, name, typeName string) map[string]bool {
	t.Helper()
	values := map[string]bool{}
	ast.Inspect(parse(t, token.NewFileSet(), name), func(node ast.Node) bool {
		constant, ok := node.(*ast.ValueSpec)
		if !ok || len(constant.Values) != 1 {
			return true
		}
		ofType := ""
		if named, ok := constant.Type.(*ast.Ident); ok {
			ofType = named.Name
		}
		if literal, ok := constant.Values[0].(*ast.BasicLit); ok && ofType == typeName {
			text, _ := strconv.Unquote(literal.Value)
			values[text] = true
		}
		return true
	})
	return values
}

// The package documentation describes the hand-written API; the comment of the generator is not in it.
func TestPackageDocumentation(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			files = append(files, parse(t, set, name))
		}
	}
	documentation, err := doc.NewFromFiles(set, files, "example.com/providerd/gen/client")
	if err != nil {
		t.Fatal(err)
	}
	text := documentation.Doc
	if !strings.HasPrefix(text, "Package client is the Go SDK of providerd. New returns Providers") ||
		strings.Count(text, "Package client") != 1 || strings.Contains(text, "oapi-codegen") {
		t.Errorf("the documentation is %s", text)
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
