//go:build slow

package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"example.com/providerd/gen/contract"
	"example.com/providerd/server"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// plansForAFault is how many generated requests a fault may survive.
const plansForAFault = 1500

// TestContractTestsFindFaults checks the generated tests: they find each fault, and a server without one passes.
//
//nolint:tparallel // The group waits for the parallel tests in it.
func TestContractTestsFindFaults(t *testing.T) {
	t.Parallel()
	list, kinds := faults(), map[string]bool{}
	var found atomic.Int64
	t.Run("fault", func(t *testing.T) {
		for _, injected := range append(list, fault{kind: "no fault", title: "none"}) {
			kinds[injected.kind] = true
			t.Run(injected.kind+" "+injected.title, func(t *testing.T) {
				t.Parallel()
				finding := seek(t, injected)
				switch {
				case injected.kind == "no fault" && finding != nil:
					t.Error(finding)
				case injected.kind != "no fault" && finding == nil:
					t.Error("is not found")
				case finding != nil:
					found.Add(1)
				}
			})
		}
	})
	t.Logf("%d of %d faults of %d kinds are found", found.Load(), len(list), len(kinds)-1)
}

// seek sends plans to a server with a fault until one reveals it.
func seek(t *testing.T, injected fault) error {
	t.Helper()
	h := start(t)
	h.url = urlOf(t, injected.around(h.newServer(t, func(config *server.Config) {
		if injected.contract != nil {
			config.Contract = parse(t, changed(t, injected.contract))
		}
	})))
	inspect := newInspector(t, h)
	var plans []*rapid.Generator[plan]
	for _, of := range subjects(t) {
		plans = append(plans, validPlans(of), brokenPlans(of))
	}
	for seed := range plansForAFault {
		for _, generator := range plans {
			p := generator.Example(seed)
			if err := inspect.carryOut(t, p); err != nil {
				return err
			}
		}
		if injected.kind == "no fault" && seed > plansForAFault/10 {
			return nil
		}
	}
	return nil
}

// changed returns the contract with one change.
func changed(t *testing.T, change func(document map[string]any)) []byte {
	t.Helper()
	document := plainContract(t)
	change(document)
	return []byte(encode(t, document))
}

func plainContract(t *testing.T) (document map[string]any) {
	t.Helper()
	processtest.Must(t, yaml.Unmarshal(contract.YAML(), &document))
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
		text := recorder.Body.Bytes()
		if f.answer != nil && contracttest.Decode(text, &answer.body) == nil {
			f.answer(answer)
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
