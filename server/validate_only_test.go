package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"

	"example.com/providerd/store/storetest/processtest"
)

const bodiesForACheck = 10

// attempt is a request that is sent as a validation and then as a create.
type attempt struct {
	body    map[string]any
	key     string
	lenient bool
}

// attempts generates requests for one operation that often conflict: in keys, client_ids, or with earlier bodies.
type attempts struct {
	valid, broken *rapid.Generator[plan]
	schema        *openapi3.Schema
	// prefix begins the keys and client_ids of one check.
	prefix string
	sent   []attempt
}

func (a *attempts) draw(t *rapid.T) attempt {
	bodies := a.valid
	if rapid.IntRange(0, 4).Draw(t, "is broken") == 0 {
		bodies = a.broken
	}
	body := bodies.Draw(t, "plan").body
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

// again draws an earlier request: unchanged, with another key, or with one field of another request, if it has it.
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
	return rapid.SampledFrom([]string{
		"", a.prefix + "a", a.prefix + "b", a.prefix + "c", a.prefix + "d", a.prefix + "e", a.prefix + "f",
	}).Draw(t, "key")
}

// TestValidationPredictsCreate sends generated requests as validations and then as creates: the responses agree, and
// only the creates store anything. The proof "contract" sends more.
func TestValidationPredictsCreate(t *testing.T) {
	t.Parallel()
	for _, of := range subjects(t) {
		t.Run(of.id, func(t *testing.T) {
			t.Parallel()
			h, checks, kinds := start(t), 0, map[string]int{}
			valid, broken := plans(of)
			rapid.Check(t, func(check *rapid.T) {
				checks++
				makeUp := attempts{valid: valid, broken: broken, schema: of.request, prefix: fmt.Sprint(checks, "/")}
				for range bodiesForACheck {
					kinds[h.validateAndSend(t, check, of.path, makeUp.draw(check))]++
					if rapid.Bool().Draw(check, "send one again") {
						kinds[h.validateAndSend(t, check, of.path, makeUp.again(check))]++
					}
				}
			})
			processtest.Equal(t, h.count(t), kinds["created"], "stored records")
			processtest.Expect(t, len(kinds) >= 4 && kinds["replayed"] != 0, "the outcomes are only %v", kinds)
			t.Logf("the outcomes are %v", kinds)
		})
	}
}

// validateAndSend compares a validation with its create, and returns the latter's outcome, such as created or replayed.
func (h *harness) validateAndSend(t *testing.T, check *rapid.T, path string, sent attempt) string {
	t.Helper()
	text := encode(t, sent.body)
	changes := []func(*http.Request){set(keyHeader, strings.Fields(sent.key)...)}
	if sent.lenient {
		changes = append(changes, set("Prefer", "handling=lenient"))
	}
	said, came := h.post(t, path+"?validate_only=true", text, changes...), h.post(t, path, text, changes...)
	for _, name := range []string{"Preference-Applied", "Retry-After", "Content-Type", "Cache-Control", "Idempotency-Replayed"} {
		processtest.Expect(check, said.header.Get(name) == came.header.Get(name),
			"%s of %s is %q, and then %q", name, text, said.header.Get(name), came.header.Get(name))
	}
	if links := said.header.Get("Link"); !isOfRules(links) {
		check.Errorf("the advice for %s is not only sentences and line numbers: %s", text, links)
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
	default:
		outcome = "created"
		want["pk"] = json.Number("0")
		if _, isSent := sent.body["client_id"]; !isSent && want["client_id"] != nil {
			want["client_id"] = ""
		}
	}
	// A validation returns no secrets.
	for name, without := range map[string]any{"credentials": map[string]any{}, "client_secret": ""} {
		if want[name] != nil {
			want[name] = without
		}
	}
	if (came.status == http.StatusCreated) != (said.status == http.StatusOK) || !reflect.DeepEqual(predicted, want) {
		check.Errorf("%s with the key %q is said to be %d %v, and is %d %s", text, sent.key,
			said.status, predicted, came.status, came.body)
	}
	return outcome
}

const validateOnly = "?validate_only=true"

func (a answer) advice(t *testing.T) (links string) {
	t.Helper()
	processtest.Require(t, a.status == http.StatusOK, "status is %d, want 200: %s", a.status, a.body)
	return a.header.Get("Link")
}

// A validation links to the advice for the requested settings, created before or not, but not for generated values.
func TestValidationHasAdvice(t *testing.T) {
	h := startParallel(t)
	for path, change := range map[string]func(map[string]any) (link string){
		oauth2Path: func(body map[string]any) string {
			body["redirect_uris"], body["signing_key"] = "https://example.com/\nhttp://example.com/", body["authorization_flow"]
			return `</advice/#redirect_uri_http>; rel="help"; anchor="#/redirect_uris"; title="Line 2: `
		},
		workspaceDirectoryPath: func(body map[string]any) string {
			body["user_delete_action"] = "delete"
			return `</advice/#delete_action_destructive>; rel="help"; anchor="#/user_delete_action"; title="`
		},
	} {
		body := minimal(path)
		processtest.Equal(t, h.post(t, path+validateOnly, encode(t, body)).advice(t), "", "advice for the smallest body")
		link := change(body)
		created := h.post(t, path, encode(t, body), set(keyHeader, path))
		processtest.Expect(t, created.header.Get("Link") == "", "a create has the advice %s", created.header.Get("Link"))
		for _, key := range []string{path, "another"} {
			links := h.post(t, path+validateOnly, encode(t, body), set(keyHeader, key)).advice(t)
			processtest.Expect(t, strings.HasPrefix(links, link) && strings.Count(links, "rel=") == 1,
				"got %s, want %s", links, link)
		}
	}
}

// A typo in the query never stores anything, and no value is quoted.
func TestMistypedQueryNeverCreates(t *testing.T) {
	h := startParallel(t)
	body := encode(t, minimal(oauth2Path))
	for says, queries := range map[string][]string{
		"must appear at most once, as validate_only=true or validate_only=false.": {
			"validate_only", "validate_only=", "validate_only=2", "validate_only=yes", "validate_only=hunter2",
			"validate_only=true%20", "validate_only=%22true%22", "validate_only=true&validate_only=true",
			"validate_only=true&validate_only=false", "validate_only=fal%C5%BFe", strings.Repeat("validate_only=true&", 300),
		},
		`"validate-only"`: {"validate-only=true"},
		"Did you mean validate_only?": {
			"validateOnly=true", "validateonly=true", "VALIDATE_ONLY=true", "valdiate_only=true", "validate_only%20=true",
		},
		`"dry_run" is not a query parameter of this operation. Remove it. To validate without storing`: {"validate_only=true&dry_run=hunter2"},
		"use validate_only=true":                   {"dryRun=All", "dry-run=1", "preview=1"},
		`"access_token" is not`:                    {"access_token=hunter2"},
		"Did you mean the header Idempotency-Key?": {"idempotency_key=hunter2", "IdempotencyKey=hunter2"},
		"Did you mean the header Prefer?":          {"prefer=hunter2"},
		`"" is not`:                                {"=", "=hunter2"},
		`"\x00" is not`:                            {"%00=1"},
		"The query cannot be read.": {
			"validate_only=true;hunter2", "validate_only=true&x;hunter2", "validate_only=%zzhunter2", "%zz=hunter2",
		},
		strings.Repeat("n", 64) + `…" is not`: {strings.Repeat("n", 4000) + "=hunter2"},
	} {
		for _, query := range queries {
			got := h.post(t, oauth2Path+"?"+query, body)
			problem := got.problem(t, http.StatusBadRequest, "invalid-parameter")
			processtest.Expect(t, strings.Contains(problem.Detail, says) && !strings.Contains(string(got.body), "hunter2"),
				"%.50s: the detail is %q, want %q", query, problem.Detail, says)
		}
	}
	count := h.count(t)
	processtest.Expect(t, count == 0, "%d records are stored", count)
	processtest.Expect(t, !strings.Contains(h.log.String(), "hunter2"), "the log has a value: %s", h.log)
	for _, query := range []string{"?", "?&", "?validate_only=false", "?validate_only=fals%65", "?validate_only=FALSE"} {
		h.post(t, oauth2Path+query, body).record(t)
	}
	for _, value := range []string{"true", "True", "TRUE", "tru%45"} {
		h.post(t, oauth2Path+"?validate_only="+value, body).advice(t)
	}
}
