package client_test

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"testing"
)

// The constants match the server's index of problems.
func TestProblemTypesMatchServer(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("problem_types.go")
	if err != nil {
		t.Fatal(err)
	}
	baseURL, _ := startServer(t)
	response, err := http.Get(baseURL + "/problems/")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	types := func(pattern string, text []byte) (found []string) {
		for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			found = append(found, string(match[1]))
		}
		slices.Sort(found)
		return found
	}
	declared, served := types(`"(/problems/[^"]+)"`, source), types(`href="(/problems/[^"]+)"`, page)
	if !slices.Equal(declared, served) {
		t.Errorf("the server has the problems %q, the SDK %q", served, declared)
	}
}
