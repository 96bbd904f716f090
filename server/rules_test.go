//go:build slow

package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

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
	cases := allFieldCases()
	h := start(t)
	var caught atomic.Int64
	t.Run("without", func(t *testing.T) {
		for _, mutated := range mutants {
			t.Run(mutated.title, func(t *testing.T) {
				t.Parallel()
				lenient := *h
				// Responses by a wrong contract are wrong, which the cases must notice.
				lenient.client = &http.Client{}
				lenient.serve(t, func(config *server.Config) { config.Contract = parse(t, mutated.contract) })
				if !slices.ContainsFunc(cases, func(c fieldCase) bool {
					q := &quiet{TB: t}
					return c.path == mutated.path && c.field == mutated.field &&
						c.check(q, lenient.post(q, c.path, c.body(q))) != nil
				}) {
					t.Errorf("no test notices")
					return
				}
				caught.Add(1)
			})
		}
	})
	t.Logf("%d of %d rules are tested", caught.Load(), len(mutants))
	if len(mutants) < 50 {
		t.Errorf("only %d rules were found in the contract", len(mutants))
	}
}

// quiet is a test that is expected to fail, because it uses a wrong contract.
type quiet struct{ testing.TB }

func (*quiet) Errorf(string, ...any) {}

// ruleMutants returns, for each rule of each request schema, the contract without that rule.
func ruleMutants(t *testing.T) []mutant {
	t.Helper()
	finder := ruleFinder{t: t, document: plainContract(t)}
	for _, of := range subjects(t) {
		finder.path = of.path
		way := []string{"paths", strings.TrimPrefix(of.path, "/api/v3"), "post", "requestBody", "content", "application/json", "schema"}
		finder.find("", way)
	}
	return finder.mutants
}

// ruleFinder finds the rules of request schemas.
type ruleFinder struct {
	t        *testing.T
	document map[string]any
	path     string
	mutants  []mutant
}

func (f *ruleFinder) find(field string, at []string) {
	schema := lookUp(f.document, at)
	if ref, ok := schema["$ref"].(string); ok {
		f.find(field, strings.Split(strings.TrimPrefix(ref, "#/"), "/"))
		return
	}
	for _, rule := range []string{
		"minLength", "maxLength", "pattern", "enum", "format", "nullable", "not", "additionalProperties",
	} {
		value, ok := schema[rule]
		if allowsAll := rule == "additionalProperties" && value != false; ok && !allowsAll {
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

func (f *ruleFinder) add(field, rule string, takeOut func(document map[string]any)) {
	f.mutants = append(f.mutants, mutant{
		path: f.path, field: field, title: strings.Join([]string{f.path, field, rule}, " "), contract: changed(f.t, takeOut),
	})
}

func lookUp(document map[string]any, at []string) map[string]any {
	for _, name := range at {
		document, _ = document[name].(map[string]any)
	}
	return document
}
