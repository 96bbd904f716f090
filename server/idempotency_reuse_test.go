package server_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// differs returns the fields that the refusal of a key lists as different.
func (a answer) differs(t *testing.T) []string {
	t.Helper()
	problem := a.problem(t, http.StatusUnprocessableEntity, "idempotency-key-reused")
	if problem.PK == nil {
		t.Fatalf("the problem has no pk: %s", a.body)
	}
	var pointers []string
	if problem.Errors != nil {
		for _, violation := range *problem.Errors {
			pointers = append(pointers, violation.Pointer)
			if violation.Code != "differs" || !strings.Contains(problem.Detail, strings.TrimPrefix(violation.Pointer, "/")) {
				t.Errorf("%+v is not in %q", violation, problem.Detail)
			}
		}
	}
	return pointers
}

// bothWays sends a body with a key, and then another body, as a validation and as a create. They must differ in these
// fields; if there are none, the answer must be a replay.
func (h *harness) bothWays(t *testing.T, key, path string, first, second map[string]any, want []string) {
	t.Helper()
	pk := h.post(t, path, encode(t, first), set(keyHeader, key)).record(t)["pk"]
	for _, query := range []string{validateOnly, ""} {
		got := h.post(t, path+query, encode(t, second), set(keyHeader, key))
		if len(want) == 0 && !got.replayed() {
			t.Errorf("%s, then %s: the answer is %d %s", encode(t, first), encode(t, second), got.status, got.body)
		}
		if len(want) > 0 {
			if differs := got.differs(t); !slices.Equal(differs, want) {
				t.Errorf("%s, then %s: %q differ, want %q", encode(t, first), encode(t, second), differs, want)
			}
		}
		var answer map[string]any
		got.decode(t, &answer)
		if answer["pk"] != pk {
			t.Errorf("pk is %v, want %v", answer["pk"], pk)
		}
	}
}

func with(body map[string]any, name string, value any) map[string]any {
	body = maps.Clone(body)
	body[name] = value
	return body
}

// Every changed field of the contract is listed, and no other.
func TestReusedKeyListsEachFieldThatDiffers(t *testing.T) {
	t.Parallel()
	for _, of := range subjects(t) {
		t.Run(of.id, func(t *testing.T) {
			t.Parallel()
			h, body := start(t), minimal(of.path)
			if of.request.Properties["client_secret"] != nil {
				// Its default depends on client_type.
				body["client_secret"] = "s"
			}
			for _, name := range slices.Sorted(maps.Keys(of.request.Properties)) {
				values := twoValues(t, of.request.Properties[name].Value)
				h.bothWays(t, name, of.path, with(body, name, values[0]), with(body, name, values[1]), []string{"/" + name})
			}
		})
	}
}

// twoValues returns two different valid values of a schema.
func twoValues(t *testing.T, schema *openapi3.Schema) []any {
	t.Helper()
	first := validNotNull(schema).Example(0)
	for seed := range 100 {
		if second := validNotNull(schema).Example(seed); encode(t, first) != encode(t, second) {
			return []any{first, second}
		}
	}
	t.Fatalf("there are no two values of %s", encode(t, schema))
	return nil
}

// Fields are listed in the order of the contract. Omitted and explicit defaults are equal, and so are notations of JSON.
// Bodies that mean the same are replays.
func TestReusedKeyComparesMeaning(t *testing.T) {
	t.Parallel()
	h := start(t)
	oauth2, directory := minimal(oauth2Path), minimal(workspaceDirectoryPath)
	public := with(oauth2, "client_type", "public")
	for title, test := range map[string]struct {
		path          string
		first, second map[string]any
		want          []string
	}{
		"a default":              {oauth2Path, oauth2, with(oauth2, "sub_mode", "hashed_user_id"), nil},
		"another than a default": {oauth2Path, oauth2, with(oauth2, "sub_mode", "user_id"), []string{"/sub_mode"}},
		"a null":                 {oauth2Path, with(oauth2, "signing_key", nil), oauth2, nil},
		"an empty list":          {oauth2Path, oauth2, with(oauth2, "jwks_sources", []any{}), nil},
		"a UUID in another case": {oauth2Path, oauth2, with(oauth2, "authorization_flow", strings.ToUpper(flow)), nil},
		"no client_id after one": {oauth2Path, with(oauth2, "client_id", "own"), oauth2, []string{"/client_id"}},
		"a client_id after none": {oauth2Path, oauth2, with(oauth2, "client_id", "late"), []string{"/client_id"}},
		"no secret after one":    {oauth2Path, with(oauth2, "client_secret", "own"), oauth2, []string{"/client_secret"}},
		"an empty secret":        {oauth2Path, with(oauth2, "client_secret", ""), oauth2, []string{"/client_secret"}},
		"no secret of a public":  {oauth2Path, with(public, "client_secret", ""), public, nil},
		"public after a secret":  {oauth2Path, oauth2, public, []string{"/client_type", "/client_secret"}},
		"a secret of a public":   {oauth2Path, public, with(public, "client_secret", "s"), []string{"/client_secret"}},
		"many fields": {
			path: oauth2Path, first: oauth2, second: map[string]any{
				"redirect_uris": "https://app.example.com/", "client_secret": "s", "client_id": "c", "name": "m",
				"authorization_flow": flow, "property_mappings": []string{flow},
			},
			want: []string{"/name", "/property_mappings", "/client_id", "/client_secret", "/redirect_uris"},
		},
		"a default action": {
			workspaceDirectoryPath, with(directory, "user_delete_action", "do_nothing"), directory, nil,
		},
		"digits of a number": {
			workspaceDirectoryPath, with(directory, "credentials", map[string]any{"a": 1.5}),
			with(directory, "credentials", json.RawMessage(`{"a":1.50}`)),
			[]string{"/credentials"},
		},
		"an exponent": {
			workspaceDirectoryPath, with(directory, "credentials", json.RawMessage(`{"a":1.10}`)),
			with(directory, "credentials", json.RawMessage(`{"a":11e-1}`)),
			[]string{"/credentials"},
		},
		"the order of members and a default": {
			workspaceDirectoryPath, with(directory, "credentials", json.RawMessage(`{"a":1,"b":{"c":"<é/","d":2}}`)),
			with(with(directory, "credentials", json.RawMessage(`{ "b":{"d":2,"c":"\u003c\u00e9\/"},"a":1 }`)), "filter_group", nil), nil,
		},
		"values in another order": {
			workspaceDirectoryPath, with(directory, "credentials", json.RawMessage(`{"a":1,"b":2}`)),
			with(directory, "credentials", json.RawMessage(`{"b":1,"a":2}`)),
			[]string{"/credentials"},
		},
		"a list in another order": {
			workspaceDirectoryPath, with(directory, "credentials", json.RawMessage(`{"a":[1,2]}`)),
			with(directory, "credentials", json.RawMessage(`{"a":[2,1]}`)),
			[]string{"/credentials"},
		},
	} {
		h.bothWays(t, strings.ReplaceAll(title, " ", "-"), test.path, test.first, test.second, test.want)
	}
}

// What the server has chosen equals an omitted value, and so does a request for exactly that value. Fields that lenient
// handling ignores do not matter.
func TestRetryMaySendGeneratedValues(t *testing.T) {
	t.Parallel()
	h := start(t)
	body, key := minimal(oauth2Path), set(keyHeader, "chosen")
	first := h.post(t, oauth2Path, encode(t, body), key)
	record := first.record(t)
	chosen := with(with(body, "client_id", record["client_id"]), "client_secret", record["client_secret"])
	for title, again := range map[string]map[string]any{
		"the values": chosen, "a field that is ignored": with(chosen, "x", 1),
		"the client_id": with(body, "client_id", record["client_id"]), "nothing": body,
	} {
		got := h.post(t, oauth2Path, encode(t, again), key, set("Prefer", "handling=lenient"))
		if !got.replayed() || string(got.body) != string(first.body) {
			t.Errorf("%s: the answer is %d %s", title, got.status, got.body)
		}
		if got := h.post(t, oauth2Path+validateOnly, encode(t, again), key, set("Prefer", "handling=lenient")); !got.replayed() {
			t.Errorf("%s: the validation is %d %s", title, got.status, got.body)
		}
	}
	// A value of the first request is not taken for one that the server chose, even if it looks like one.
	h.bothWays(t, "sent", oauth2Path, with(with(body, "client_id", strings.Repeat("a", 40)), "client_secret", strings.Repeat("a", 128)),
		body, []string{"/client_id", "/client_secret"})
}
