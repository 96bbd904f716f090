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
const plansForAFault = 2000

// TestContractTestsFindFaults checks the generated tests: they find each fault, and a server without one passes.
func TestContractTestsFindFaults(t *testing.T) {
	t.Parallel()
	injected := requestFaults()
	maps.Copy(injected, answerFaults())
	for title, injected := range injected {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			processtest.Expect(t, seek(t, injected, plansForAFault) != nil, "is not found")
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
	faulty := httptest.NewServer(injected.around(inspect.newServer(t, func(config *server.Config) {
		if injected.contract != nil {
			config.Contract = changedContract(t, injected.contract)
		}
	})))
	t.Cleanup(faulty.Close)
	inspect.url = faulty.URL
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
	h, cases, count := start(t), allFieldCases(), 0
	for _, of := range subjects(t) {
		way := []string{"paths", strings.TrimPrefix(of.path, "/api/v3"), "post", "requestBody", "content", "application/json", "schema"}
		eachRule(plainContract(t), "", way, func(field, rule string, takeOut func(document map[string]any)) {
			count++
			t.Run(strings.Join([]string{of.path, field, rule}, " "), func(t *testing.T) {
				t.Parallel()
				lenient := *h
				// Responses by a wrong contract are wrong, which the cases must notice.
				lenient.client = &http.Client{}
				lenient.serve(t, func(config *server.Config) { config.Contract = changedContract(t, takeOut) })
				if !slices.ContainsFunc(cases, func(c fieldCase) bool {
					q := &quiet{TB: t}
					return c.path == of.path && c.field == field && c.check(q, lenient.post(q, c.path, encode(q, c.body))) != nil
				}) {
					t.Errorf("no test notices")
				}
			})
		})
	}
	processtest.Expect(t, count >= 50, "only %d rules were found in the contract", count)
}

// quiet is a test that is expected to fail, because it uses a wrong contract.
type quiet struct{ testing.TB }

func (*quiet) Errorf(string, ...any) {}

// eachRule calls a function for each rule of the schema of a field, and of all that it contains.
func eachRule(
	document map[string]any, field string, at []string,
	found func(field, rule string, takeOut func(document map[string]any)),
) {
	schema := lookUp(document, at)
	if ref, ok := schema["$ref"].(string); ok {
		eachRule(document, field, strings.Split(strings.TrimPrefix(ref, "#/"), "/"), found)
		return
	}
	for _, rule := range []string{
		"minLength", "maxLength", "pattern", "enum", "format", "nullable", "x-refused-schemes", "x-visible", "additionalProperties",
	} {
		value, ok := schema[rule]
		if allowsAll := rule == "additionalProperties" && value != false; ok && !allowsAll {
			found(field, rule, func(document map[string]any) { delete(lookUp(document, at), rule) })
		}
	}
	required, _ := schema["required"].([]any)
	for i, name := range required {
		found(fmt.Sprint(name), "required", func(document map[string]any) {
			lookUp(document, at)["required"] = slices.Delete(slices.Clone(required), i, i+1)
		})
	}
	if _, ok := schema["items"]; ok {
		eachRule(document, field, append(slices.Clone(at), "items"), found)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name := range properties {
		eachRule(document, name, append(slices.Clone(at), "properties", name), found)
	}
}

func lookUp(document map[string]any, at []string) map[string]any {
	for _, name := range at {
		document, _ = document[name].(map[string]any)
	}
	return document
}
