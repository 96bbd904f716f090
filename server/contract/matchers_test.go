package contract_test

import (
	"fmt"
	"sync"
	"testing"
	_ "unsafe" // for the link to kin-openapi

	"example.com/providerd/server/contract"
)

// compiledPatterns is the cache of kin-openapi, which gives no access to it.
//
//go:linkname compiledPatterns github.com/getkin/kin-openapi/openapi3.compiledPatterns
var compiledPatterns sync.Map //nolint:gochecknoglobals // It is a variable of kin-openapi.

// TestPatternsAreMatchedByAutomata proves that kin-openapi uses the automata, which it does not for every pattern and
// order of calls.
func TestPatternsAreMatchedByAutomata(t *testing.T) {
	if _, err := contract.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	count := 0
	compiledPatterns.Range(func(pattern, matcher any) bool {
		count++
		if name := fmt.Sprintf("%T", matcher); name != "*pattern.automaton" {
			t.Errorf("%s is matched by %s", pattern, name)
		}
		return true
	})
	if count < 13 {
		t.Errorf("%d patterns are compiled", count)
	}
}
