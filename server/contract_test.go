package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	text "example.com/providerd/gen/contract"
	"example.com/providerd/gen/model"
	"example.com/providerd/server/contract"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// subject is one operation of the contract that generated requests test.
type subject struct {
	id, path         string
	request, success *openapi3.Schema
	breaches         []breach
}

func subjects(t testing.TB) []subject {
	t.Helper()
	document := processtest.Try(openapi3.NewLoader().LoadFromData(text.YAML())).Must(t)
	var list []subject
	for path, item := range document.Paths.Map() {
		request := item.Post.RequestBody.Value.Content["application/json"].Schema.Value
		list = append(list, subject{
			id:       item.Post.OperationID,
			path:     document.Servers[0].URL + path,
			request:  request,
			success:  item.Post.Responses.Status(http.StatusCreated).Value.Content["application/json"].Schema.Value,
			breaches: breaches(request),
		})
	}
	return list
}

type plan struct {
	subject subject
	body    map[string]any
	// broken is the rule that the body breaks; the zero value if it breaks none.
	broken breach
}

func plans(of subject) (valid, broken *rapid.Generator[plan]) {
	bodies := validObject(of.request)
	valid = rapid.Custom(func(t *rapid.T) plan { return plan{subject: of, body: bodies.Draw(t, "body")} })
	broken = rapid.Custom(func(t *rapid.T) plan {
		drawn := valid.Draw(t, "valid")
		drawn.broken = of.breaches[rapid.IntRange(0, len(of.breaches)-1).Draw(t, "breach")]
		drawn.broken.apply(t, drawn.body)
		return drawn
	})
	return valid, broken
}

// inspector sends plans and finds deviations from the contract.
type inspector struct {
	*harness
	// accepted has the stored values of fields. The repetition of a unique one is the only reason for a conflict.
	accepted map[string]bool
}

func (i *inspector) carryOut(t testing.TB, p plan) error {
	t.Helper()
	got := i.post(t, p.subject.path, encode(t, p.body))
	if err := got.check(p.subject.path); err != nil {
		return err
	}
	if got.status == http.StatusCreated && p.broken.pointer == "" {
		return i.inspectRecord(t, p, got)
	}
	var problem model.Problem
	if err := json.Unmarshal(got.body, &problem); err != nil {
		return err
	}
	list := violations(problem)
	switch {
	case p.broken.pointer == "" && got.status != http.StatusConflict:
		return fmt.Errorf("a valid request is answered %d: %s", got.status, got.body)
	case p.broken.pointer == "":
		return i.inspectConflict(p, list)
	case got.status != http.StatusBadRequest || problem.Type != "/problems/validation-failed":
		return fmt.Errorf("%s: status is %d %s", p.broken.title, got.status, problem.Type)
	case len(list) != 1 || !strings.HasPrefix(list[0], p.broken.pointer+" "):
		return fmt.Errorf("%s: entries are %q, want %s alone", p.broken.title, list, p.broken.pointer)
	default:
		return nil
	}
}

func (a answer) check(path string) error {
	request := httptest.NewRequest(http.MethodPost, path, http.NoBody)
	return contracttest.Check(request, &http.Response{StatusCode: a.status, Header: a.header}, a.body)
}

// inspectConflict accepts a refusal whose only entry names a value that is already stored.
func (i *inspector) inspectConflict(p plan, list []string) error {
	if len(list) != 1 {
		return fmt.Errorf("a conflict names no field: %q", list)
	}
	pointer, _, _ := strings.Cut(list[0], " ")
	if name := strings.TrimPrefix(pointer, "/"); !i.accepted[name+fmt.Sprint(p.body[name])] {
		return fmt.Errorf("%s is refused as taken, though it is not", pointer)
	}
	return nil
}

// inspectRecord checks that every sent value is returned, and that the stored record is the returned one.
func (i *inspector) inspectRecord(t testing.TB, p plan, got answer) error {
	var record map[string]any
	var pk struct{ PK int64 }
	if err := errors.Join(contracttest.Decode(got.body, &record), json.Unmarshal(got.body, &pk)); err != nil {
		return err
	}
	for name, sent := range p.body {
		i.accepted[name+fmt.Sprint(sent)] = true
		// A UUID may come back in another case.
		want, got := encode(t, sent), encode(t, record[name])
		if schema := p.subject.success.Properties[name]; schema != nil && got != want && (!isUUID(schema.Value) || got != strings.ToLower(want)) {
			return fmt.Errorf("%s is sent as %s and returned as %s", name, want, got)
		}
	}
	stored, err := i.database.Providers.Get(t.Context(), pk.PK)
	if err != nil {
		return err
	}
	if rendered := roundTrip(t, contract.ToAPI(stored, true)); !reflect.DeepEqual(rendered, any(record)) {
		return fmt.Errorf("answered %v, stored %v", record, rendered)
	}
	return nil
}

func isUUID(schema *openapi3.Schema) bool {
	return schema.Format == "uuid" || schema.Items != nil && isUUID(schema.Items.Value)
}

// TestContract sends generated requests: valid ones, and some that break one rule. The proof "contract" sends more.
func TestContract(t *testing.T) {
	t.Parallel()
	for _, of := range subjects(t) {
		t.Run(of.id, func(t *testing.T) {
			t.Parallel()
			inspect := inspector{harness: start(t), accepted: map[string]bool{}}
			valid, broken := plans(of)
			rapid.Check(t, func(check *rapid.T) {
				for _, p := range []plan{valid.Draw(check, "valid"), broken.Draw(check, "broken")} {
					err := inspect.carryOut(t, p)
					processtest.Require(check, err == nil, "%s: %v", encode(t, p.body), err)
				}
			})
		})
	}
}

// The contract that is served is openapi.yaml, without the extensions that only this project reads, with its fields in
// the same order as YAML and as JSON, and readable by pages of any origin. Its headers have no examples, which pages and
// tools would send by default: a fixed key turns every second request into a conflict, and lenient handling hides typos.
func TestContractIsServed(t *testing.T) {
	h := startParallel(t)
	written := processtest.Try(os.ReadFile("../openapi.yaml")).Must(t)
	inYAML, inJSON := h.send(t, http.MethodGet, "/openapi.yaml", nil), h.send(t, http.MethodGet, "/openapi.json", nil)
	served := strings.Split(string(inYAML.body), "\n")
	for line := range strings.SplitSeq(string(written), "\n") {
		if len(served) > 0 && served[0] == line {
			served = served[1:]
		}
	}
	processtest.Expect(t, len(served) == 0 && len(inYAML.body) < len(written), "openapi.yaml is not served: run make gen")
	for _, answer := range []answer{inYAML, inJSON} {
		processtest.Expect(t, !strings.Contains(string(answer.body), "x-go-type") &&
			!strings.Contains(string(answer.body), "x-violation") && answer.header.Get("Access-Control-Allow-Origin") == "*",
			"the contract has extensions of this project, or no other origin may read it: %v", answer.header)
	}
	// JSON is a part of YAML.
	var rootOfYAML, rootOfJSON yaml.Node
	processtest.Must(t, yaml.Unmarshal(inYAML.body, &rootOfYAML), yaml.Unmarshal(inJSON.body, &rootOfJSON))
	processtest.Equal(t, fieldNames(&rootOfYAML), fieldNames(&rootOfJSON), "order of the fields in YAML, and in JSON")
	document := processtest.Try(openapi3.NewLoader().LoadFromData(inJSON.body)).Must(t)
	processtest.Check(t, document.Validate(t.Context()))
	url := document.Servers[0].URL
	processtest.Expect(t, url == h.url+"/api/v3", "the server is %s in JSON, want an absolute URL", url)
	behind := h.send(t, http.MethodGet, "/openapi.json", nil, set("X-Forwarded-Proto", "https"))
	processtest.Contains(t, string(behind.body), `[{"url":"https`+strings.TrimPrefix(h.url, "http")+`/api/v3"`)
	processtest.Expect(t, !bytes.Contains(inYAML.body, []byte("\t")), "the contract has tabs, which some programs refuse")
	for _, item := range document.Paths.Map() {
		parameters := item.Post.Parameters
		processtest.Equal(t, len(parameters), 3, "parameters of an operation")
		for _, parameter := range parameters {
			value := parameter.Value
			processtest.Equal(t, parameter.Ref, "", "reference of %s, which some programs take for a header", value.Name)
			isPrefilled := value.Schema.Value.Default != nil && value.Schema.Value.Default != false
			processtest.Expect(t, value.Example == nil && len(value.Examples) == 0 && value.Schema.Value.Example == nil &&
				!isPrefilled, "%s is prefilled", value.Name)
		}
	}
}

func fieldNames(node *yaml.Node) (names []string) {
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			names = append(names, child.Value)
		}
		names = append(names, fieldNames(child)...)
	}
	return names
}
