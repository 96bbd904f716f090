package contract_test

import (
	"fmt"
	"sync"
	"testing"
	_ "unsafe" // for the link to kin-openapi

	"example.com/providerd/gen/model"
	"example.com/providerd/server/contract"
	"example.com/providerd/store/storetest/processtest"
)

// compiledPatterns is the cache of kin-openapi, which gives no access to it.
//
//go:linkname compiledPatterns github.com/getkin/kin-openapi/openapi3.compiledPatterns
var compiledPatterns sync.Map //nolint:gochecknoglobals // It is a variable of kin-openapi.

// TestPatternsAreMatchedByAutomata proves that kin-openapi uses the automata, which depends on the order of calls.
func TestPatternsAreMatchedByAutomata(t *testing.T) {
	processtest.Try(contract.Load(t.Context())).Must(t)
	count := 0
	compiledPatterns.Range(func(pattern, matcher any) bool {
		count++
		processtest.Equal(t, fmt.Sprintf("%T", matcher), "*pattern.automaton", "matcher of %s", pattern)
		return true
	})
	processtest.Expect(t, count >= 13, "%d patterns are compiled", count)
}

// BenchmarkSteps measures the steps that a create like those of cmd/bench takes in this package.
func BenchmarkSteps(b *testing.B) {
	op, _ := processtest.Try(contract.Load(b.Context())).Must(b).Operation("providers_oauth2_create")
	body := []byte(`{"name":"bench 1234","authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01",` +
		`"redirect_uris":"https://app1234.example.com/callback","sub_mode":"user_uuid"}`)
	sent := processtest.Try(op.Read(body)).Must(b)
	for name, step := range map[string]func() error{
		"read":     func() error { _, err := op.Read(body); return err },
		"validate": func() error { return op.Validate(sent, false) },
		"bind":     func() error { return sent.Bind(new(model.OAuth2ProviderRequest)) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				processtest.Must(b, step())
			}
		})
	}
}
