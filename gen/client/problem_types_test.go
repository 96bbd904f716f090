package client_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"example.com/providerd/gen/client"
)

// The constants are the types that the server's index of problems leads to.
func TestProblemTypesAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	declared := constants(t, "problem_types.go", "")
	delete(declared, client.TypeForeign)
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
	for one := range declared {
		if !strings.Contains(string(page), `href="`+one+`"`) {
			t.Errorf("the server has no problem %s", one)
		}
	}
	if linked != len(declared) {
		t.Errorf("the server has %d problems, the SDK %d", linked, len(declared))
	}
}
