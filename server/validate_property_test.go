package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"
)

// bodiesForACheck is how many bodies each check generates.
const bodiesForACheck = 10

// attempt is a request that is sent as a validation and then as a create.
type attempt struct {
	body    map[string]any
	key     string
	lenient bool
}

// attempts generates requests for one operation, many of which conflict: with used keys, taken client_ids, and
// earlier bodies, changed or not.
type attempts struct {
	valid, broken *rapid.Generator[plan]
	schema        *openapi3.Schema
	// prefix begins the keys and client_ids of one check.
	prefix string
	sent   []attempt
}

func (a *attempts) draw(t *rapid.T) attempt {
	var body map[string]any
	if rapid.IntRange(0, 4).Draw(t, "is broken") == 0 {
		body = a.broken.Draw(t, "broken").body
	} else {
		body = a.valid.Draw(t, "valid").body
	}
	if a.schema.Properties["client_id"] != nil && rapid.Bool().Draw(t, "shares a client_id") {
		body["client_id"] = a.prefix + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "client_id")
	}
	if rapid.IntRange(0, 19).Draw(t, "has an unknown field") == 0 {
		body["client_ip"] = "x"
	}
	drawn := attempt{body: body, key: a.key(t), lenient: rapid.IntRange(0, 9).Draw(t, "is lenient") == 0}
	a.sent = append(a.sent, drawn)
	return drawn
}

// again draws an earlier request: unchanged, with another key, or with one field taken from another request, which
// may not have it.
func (a *attempts) again(t *rapid.T) attempt {
	drawn := rapid.SampledFrom(a.sent).Draw(t, "again")
	switch rapid.SampledFrom([]string{"as it was", "key", "field"}).Draw(t, "change") {
	case "key":
		drawn.key = a.key(t)
	case "field":
		other := rapid.SampledFrom(a.sent).Draw(t, "other")
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(a.schema.Properties))).Draw(t, "field")
		drawn.body = maps.Clone(drawn.body)
		delete(drawn.body, name)
		if value, ok := other.body[name]; ok {
			drawn.body[name] = value
		}
	}
	return drawn
}

func (a *attempts) key(t *rapid.T) string {
	key := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f"}).Draw(t, "key")
	if key == "" {
		return ""
	}
	return a.prefix + key
}

// TestValidationPredictsCreate sends generated requests as validations and then as creates: the responses agree, and
// only the creates store anything. The proof "contract" sends more.
func TestValidationPredictsCreate(t *testing.T) {
	t.Parallel()
	for _, of := range subjects(t) {
		t.Run(of.id, func(t *testing.T) {
			t.Parallel()
			h, valid, broken := start(t), validPlans(of), brokenPlans(of)
			generated, repeated, checks := 0, 0, 0
			kinds := map[string]int{}
			rapid.Check(t, func(check *rapid.T) {
				checks++
				makeUp := attempts{valid: valid, broken: broken, schema: of.request, prefix: fmt.Sprint(checks, "/")}
				for range bodiesForACheck {
					generated++
					kinds[h.validateAndSend(t, check, of.path, makeUp.draw(check))]++
					if rapid.Bool().Draw(check, "send one again") {
						repeated++
						kinds[h.validateAndSend(t, check, of.path, makeUp.again(check))]++
					}
				}
			})
			if stored := h.count(t); stored != kinds["created"] {
				t.Errorf("%d records are stored, want %d", stored, kinds["created"])
			}
			if len(kinds) < 4 || kinds["replayed"] == 0 {
				t.Errorf("the outcomes are only %v", kinds)
			}
			t.Logf("%s: %d bodies, %d more that were sent before; outcomes %v", of.id, generated, repeated, kinds)
		})
	}
}

// validateAndSend compares the response to a validation with that to the create, and returns the outcome of the latter:
// created, replayed, or the type of the problem.
func (h *harness) validateAndSend(t *testing.T, check *rapid.T, path string, sent attempt) string {
	t.Helper()
	text := encode(t, sent.body)
	var changes []func(*http.Request)
	if sent.key != "" {
		changes = append(changes, set(keyHeader, sent.key))
	}
	if sent.lenient {
		changes = append(changes, set("Prefer", "handling=lenient"))
	}
	said, came := h.post(t, path+"?validate_only=true", text, changes...), h.post(t, path, text, changes...)
	for _, name := range []string{"Preference-Applied", "Retry-After", "Content-Type", "Cache-Control", "Idempotency-Replayed"} {
		if said.header.Get(name) != came.header.Get(name) {
			check.Errorf("%s of %s is %q, and then %q", name, text, said.header.Get(name), came.header.Get(name))
		}
	}
	var predicted, want map[string]any
	said.decode(t, &predicted)
	came.decode(t, &want)
	outcome := fmt.Sprint(want["type"])
	switch {
	case came.status != http.StatusCreated:
		delete(predicted, "request_id")
		delete(want, "request_id")
	case came.replayed():
		outcome = "replayed"
		withoutSecrets(want)
	default:
		outcome = "created"
		withoutSecrets(want)
		want["pk"] = json.Number("0")
		if _, isSent := sent.body["client_id"]; !isSent && want["client_id"] != nil {
			want["client_id"] = ""
		}
	}
	if (came.status == http.StatusCreated) != (said.status == http.StatusOK) || !reflect.DeepEqual(predicted, want) {
		check.Errorf("%s with the key %q is said to be %d %v, and is %d %s", text, sent.key,
			said.status, predicted, came.status, came.body)
	}
	return outcome
}

// withoutSecrets changes a record to that of a validation.
func withoutSecrets(record map[string]any) {
	if _, ok := record["credentials"]; ok {
		record["credentials"] = map[string]any{}
		return
	}
	record["client_secret"] = ""
}
