package client_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/providerd/gen/client"
)

// The constants are the types that the server's index of problems leads to.
func TestProblemTypesAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "problem_types.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	ast.Inspect(file, func(node ast.Node) bool {
		if value, ok := node.(*ast.BasicLit); ok {
			text, _ := strconv.Unquote(value.Value)
			declared = append(declared, text)
		}
		return true
	})
	declared = slices.DeleteFunc(declared, func(one string) bool { return one == client.TypeForeign })
	baseURL, _, stop := startServer()
	defer stop()
	response, err := http.Get(baseURL + "/problems/")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Count(string(page), `href="/problems/`)
	for _, one := range declared {
		if !strings.Contains(string(page), `href="`+one+`"`) {
			t.Errorf("the server has no problem %s", one)
		}
	}
	if linked != len(declared) {
		t.Errorf("the server has %d problems, the SDK %d", linked, len(declared))
	}
}
