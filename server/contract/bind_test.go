package contract_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"testing"
	_ "unsafe" // for the link to kin-openapi

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"

	"example.com/providerd/gen/model"
	"example.com/providerd/server/contract"
	"example.com/providerd/store/storetest/processtest"
)

// TestBoundRequestIsTheBody binds bodies with any of the contract's fields, as encoding/json does.
func TestBoundRequestIsTheBody(t *testing.T) {
	t.Parallel()
	document := processtest.Try(contract.Load(t.Context())).Must(t)
	bound := map[string]bool{}
	for id, newRequest := range map[string]func() any{
		"providers_oauth2_create":              func() any { return new(model.OAuth2ProviderRequest) },
		"providers_workspace_directory_create": func() any { return new(model.WorkspaceDirectoryProviderRequest) },
	} {
		op, _ := document.Operation(id)
		schema := document.RequestSchema(id)
		rapid.Check(t, func(t *rapid.T) {
			members := map[string]any{}
			for _, name := range op.FieldNames() {
				property := schema.Properties[name].Value
				switch {
				case property.Nullable && rapid.Bool().Draw(t, name+" is null"):
					members[name] = nil
				case rapid.Bool().Draw(t, name+" is sent"):
					members[name] = valueOf(t, property)
				}
			}
			// Duplicate names are refused before a body is bound.
			body := processtest.Try(json.Marshal(members)).Must(t)
			want, got := newRequest(), newRequest()
			processtest.Must(t, json.Unmarshal(body, want))
			sent, err := op.Read(body)
			processtest.Must(t, err, sent.Bind(got))
			processtest.Require(t, reflect.DeepEqual(got, want), "%s is bound as %+v, want %+v", body, got, want)
			for name := range members {
				bound[id+" "+name] = true
			}
		})
		for _, name := range op.FieldNames() {
			processtest.Expect(t, bound[id+" "+name], "%s was never bound", name)
		}
	}
}

func valueOf(t *rapid.T, property *openapi3.Schema) any {
	switch {
	case property.Type.Is(openapi3.TypeBoolean):
		return rapid.Bool().Draw(t, "boolean")
	case property.Type.Is(openapi3.TypeArray):
		return rapid.SliceOf(rapid.StringMatching(property.Items.Value.Pattern)).Draw(t, "list")
	case property.Type.Is(openapi3.TypeObject):
		return rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "object")
	case property.Format == "uuid":
		return rapid.StringMatching(property.Pattern).Draw(t, "id")
	case len(property.Enum) > 0:
		return fmt.Sprint(rapid.SampledFrom(property.Enum).Draw(t, "value"))
	default:
		return rapid.String().Draw(t, "string")
	}
}

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
