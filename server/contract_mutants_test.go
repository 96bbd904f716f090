//go:build slow

package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	text "example.com/providerd/gen/contract"
	"example.com/providerd/server"
	"example.com/providerd/server/contract"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// plansForAFault is how many generated requests a fault may survive.
const plansForAFault = 1500

// TestContractTestsFindFaults checks the generated tests: they find each fault, and a server without one passes.
func TestContractTestsFindFaults(t *testing.T) {
	t.Parallel()
	injected := requestFaults()
	maps.Copy(injected, answerFaults())
	for title, injected := range injected {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			if seek(t, injected, plansForAFault) == nil {
				t.Error("is not found")
			}
		})
	}
	if err := seek(t, fault{}, plansForAFault/10); err != nil {
		t.Error(err)
	}
}

// seek sends plans to a server with a fault until one reveals it.
func seek(t *testing.T, injected fault, most int) error {
	t.Helper()
	inspect := inspector{harness: start(t), accepted: map[string]bool{}}
	inspect.client = &http.Client{}
	inspect.url = urlOf(t, injected.around(inspect.newServer(t, func(config *server.Config) {
		if injected.contract != nil {
			config.Contract = changedContract(t, injected.contract)
		}
	})))
	var generators []*rapid.Generator[plan]
	for _, of := range subjects(t) {
		valid, broken := plans(of)
		generators = append(generators, valid, broken)
	}
	for seed := range most {
		for _, generator := range generators {
			if err := inspect.carryOut(t, generator.Example(seed)); err != nil {
				return err
			}
		}
	}
	return nil
}

func changedContract(t *testing.T, change func(document map[string]any)) *contract.Document {
	t.Helper()
	document := plainContract(t)
	change(document)
	parsed, err := contract.Parse(t.Context(), []byte(encode(t, document)))
	processtest.Must(t, err)
	return parsed
}

func plainContract(t *testing.T) (document map[string]any) {
	t.Helper()
	processtest.Must(t, yaml.Unmarshal(text.YAML(), &document))
	return document
}

// around injects the fault between the caller and the server.
func (f fault) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.request != nil {
			changeRequest(r, f.request)
		}
		recorder := httptest.NewRecorder()
		next.ServeHTTP(recorder, r)
		answer := &recorded{status: recorder.Code, header: recorder.Header(), body: map[string]any{}}
		change := f.success
		if answer.status >= http.StatusBadRequest {
			change = f.problem
		}
		text := recorder.Body.Bytes()
		if change != nil && contracttest.Decode(text, &answer.body) == nil {
			change(answer)
			text, _ = json.Marshal(answer.body)
		}
		maps.Copy(w.Header(), answer.header)
		w.WriteHeader(answer.status)
		_, _ = w.Write(text)
	})
}

func changeRequest(r *http.Request, change func(body map[string]any)) {
	text, err := io.ReadAll(r.Body)
	var body map[string]any
	if errors.Join(err, contracttest.Decode(text, &body)) == nil {
		change(body)
		text, _ = json.Marshal(body)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
}

// TestEveryRuleOfTheContractIsTested removes the rules of the request schemas one at a time. A case of the field must
// fail.
func TestEveryRuleOfTheContractIsTested(t *testing.T) {
	t.Parallel()
	finder, cases, h := ruleFinder{document: plainContract(t)}, allFieldCases(), start(t)
	for _, of := range subjects(t) {
		finder.path = of.path
		finder.find("", "paths", strings.TrimPrefix(of.path, "/api/v3"), "post", "requestBody", "content", "application/json", "schema")
	}
	if len(finder.rules) < 50 {
		t.Errorf("only %d rules were found in the contract", len(finder.rules))
	}
	for _, rule := range finder.rules {
		t.Run(strings.Join([]string{rule.path, rule.field, rule.name}, " "), func(t *testing.T) {
			t.Parallel()
			lenient := *h
			// Responses by a wrong contract are wrong, which the cases must notice.
			lenient.client = &http.Client{}
			lenient.serve(t, func(config *server.Config) { config.Contract = changedContract(t, rule.takeOut) })
			if !slices.ContainsFunc(cases, func(c fieldCase) bool {
				q := &quiet{TB: t}
				return c.path == rule.path && c.field == rule.field && c.check(q, lenient.post(q, c.path, encode(q, c.body))) != nil
			}) {
				t.Errorf("no test notices")
			}
		})
	}
}

// quiet is a test that is expected to fail, because it uses a wrong contract.
type quiet struct{ testing.TB }

func (*quiet) Errorf(string, ...any) {}

// rule is a rule of a request schema, which can be taken out of the contract.
type rule struct {
	path, field, name string
	takeOut           func(document map[string]any)
}

// ruleFinder finds the rules of request schemas.
type ruleFinder struct {
	document map[string]any
	path     string
	rules    []rule
}

func (f *ruleFinder) find(field string, at ...string) {
	schema := lookUp(f.document, at)
	if ref, ok := schema["$ref"].(string); ok {
		f.find(field, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		return
	}
	for _, name := range []string{
		"minLength", "maxLength", "pattern", "enum", "format", "nullable", "not", "additionalProperties",
	} {
		value, ok := schema[name]
		if allowsAll := name == "additionalProperties" && value != false; ok && !allowsAll {
			f.rules = append(f.rules, rule{f.path, field, name, func(document map[string]any) { delete(lookUp(document, at), name) }})
		}
	}
	required, _ := schema["required"].([]any)
	for i, name := range required {
		f.rules = append(f.rules, rule{f.path, fmt.Sprint(name), "required", func(document map[string]any) {
			lookUp(document, at)["required"] = slices.Delete(slices.Clone(required), i, i+1)
		}})
	}
	if _, ok := schema["items"]; ok {
		f.find(field, append(slices.Clone(at), "items")...)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name := range properties {
		f.find(name, append(slices.Clone(at), "properties", name)...)
	}
}

func lookUp(document map[string]any, at []string) map[string]any {
	for _, name := range at {
		document, _ = document[name].(map[string]any)
	}
	return document
}
