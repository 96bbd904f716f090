//go:build slow

package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"example.com/providerd/gen/contract"
	"example.com/providerd/server"
)

// mutant is the contract without one rule of a request.
type mutant struct {
	path, field, title string
	contract           []byte
}

// TestEveryRuleOfTheContractIsTested removes the rules of the request schemas one at a time. A case of the field must
// fail.
//
//nolint:tparallel // The group waits for the parallel tests in it.
func TestEveryRuleOfTheContractIsTested(t *testing.T) {
	t.Parallel()
	mutants := ruleMutants(t)
	cases := append(allFieldCases(), unknownFieldCases()...)
	h := start(t)
	caught := make(chan bool, len(mutants))
	t.Run("without", func(t *testing.T) {
		for _, mutated := range mutants {
			t.Run(mutated.title, func(t *testing.T) {
				t.Parallel()
				lenient := *h
				// Responses by a wrong contract are wrong, which the cases must notice.
				lenient.client = &http.Client{}
				lenient.serve(t, func(config *server.Config) { config.Contract = parse(t, mutated.contract) })
				notices := notice(t, &lenient, mutated, cases)
				if !notices {
					t.Errorf("no test notices")
				}
				caught <- notices
			})
		}
	})
	close(caught)
	count := 0
	for one := range caught {
		if one {
			count++
		}
	}
	t.Logf("%d of %d rules are tested", count, len(mutants))
	if len(mutants) < 50 {
		t.Errorf("only %d rules were found in the contract", len(mutants))
	}
}

func notice(t *testing.T, h *harness, mutated mutant, cases []fieldCase) bool {
	t.Helper()
	return slices.ContainsFunc(cases, func(one fieldCase) bool {
		return one.path == mutated.path && one.field == mutated.field && one.run(&quiet{TB: t}, h) != nil
	})
}

// quiet is a test that is expected to fail, because it uses a wrong contract.
type quiet struct{ testing.TB }

func (*quiet) Errorf(string, ...any) {}

// ruleMutants returns, for each rule of each request schema, the contract without that rule.
func ruleMutants(t *testing.T) []mutant {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromData(contract.YAML())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	var mutants []mutant
	for path, item := range document.Paths.Map() {
		name := strings.TrimPrefix(item.Post.RequestBody.Value.Content["application/json"].Schema.Ref,
			"#/components/schemas/")
		finder := ruleFinder{t: t, text: text, path: "/api/v3" + path, mutants: &mutants}
		finder.find("", []string{"components", "schemas", name})
	}
	return mutants
}

// ruleFinder finds the rules of one request schema.
type ruleFinder struct {
	t       *testing.T
	text    []byte
	path    string
	mutants *[]mutant
}

func (f ruleFinder) find(field string, at []string) {
	schema := lookUp(f.decode(), at)
	if ref, ok := schema["$ref"].(string); ok {
		f.find(field, strings.Split(strings.TrimPrefix(ref, "#/"), "/"))
		return
	}
	for _, rule := range []string{
		"minLength", "maxLength", "pattern", "enum", "format", "nullable", "not", "additionalProperties",
	} {
		value, ok := schema[rule]
		if allowsAll := rule == "additionalProperties" && value == true; ok && !allowsAll {
			f.add(field, rule, func(document map[string]any) { delete(lookUp(document, at), rule) })
		}
	}
	required, _ := schema["required"].([]any)
	for i, name := range required {
		f.add(fmt.Sprint(name), "required", func(document map[string]any) {
			lookUp(document, at)["required"] = slices.Delete(slices.Clone(required), i, i+1)
		})
	}
	if _, ok := schema["items"]; ok {
		f.find(field, append(slices.Clone(at), "items"))
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		f.find(name, append(slices.Clone(at), "properties", name))
	}
}

func (f ruleFinder) add(field, rule string, takeOut func(document map[string]any)) {
	document := f.decode()
	takeOut(document)
	text, err := json.Marshal(document)
	if err != nil {
		f.t.Fatal(err)
	}
	*f.mutants = append(*f.mutants, mutant{
		path: f.path, field: field, title: strings.Join([]string{f.path, field, rule}, " "), contract: text,
	})
}

func (f ruleFinder) decode() map[string]any {
	var document map[string]any
	if err := json.Unmarshal(f.text, &document); err != nil {
		f.t.Fatal(err)
	}
	return document
}

func lookUp(document map[string]any, at []string) map[string]any {
	for _, name := range at {
		document, _ = document[name].(map[string]any)
	}
	return document
}
