package server_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.com/providerd/store/records"
	"example.com/providerd/store/storetest/processtest"
)

const keyHeader = "Idempotency-Key"

func (a answer) replayed() bool { return a.header.Get("Idempotency-Replayed") == "true" }

// A retry gets the same response until the record is linked to an application.
func TestRetryGetsTheSameRecord(t *testing.T) {
	h := startParallel(t)
	for _, path := range []string{oauth2Path, workspaceDirectoryPath} {
		body := encode(t, minimal(path))
		first := h.post(t, path, body, set(keyHeader, "key"))
		again := h.post(t, path, body, set(keyHeader, "key"))
		processtest.Expect(t, !first.replayed() && again.replayed() && string(again.body) == string(first.body),
			"%s: first %v %s, then %v %s", path, first.replayed(), first.body, again.replayed(), again.body)
	}
	pk := int64(1)
	processtest.Try(h.database.Applications.Create(t.Context(), records.Application{Slug: "shop", Name: "Shop", ProviderPK: &pk})).Must(t)
	record := h.post(t, oauth2Path, encode(t, minimal(oauth2Path)), set(keyHeader, "key")).record(t)
	processtest.Equal(t, record["assigned_application_slug"], "shop", "assigned_application_slug")
}

func TestKeyIsLiteral(t *testing.T) {
	h := startParallel(t)
	body := encode(t, minimal(oauth2Path))
	seen := map[any]string{}
	for _, key := range []string{
		"a", "A", `"a"`, "'a'", "a,b", "a;b=c", "%61", "a%", "%zz", "a+b", "a=b", "a/b?c#d", `\`, `"`, "{}", "[1]", "null", "1", "~!",
		strings.Repeat("x", 255),
	} {
		first := h.post(t, oauth2Path, body, set(keyHeader, key)).record(t)["pk"]
		other, ok := seen[first]
		processtest.Expect(t, !ok, "%q is taken for %q", key, other)
		seen[first] = key
		processtest.Equal(t, h.post(t, oauth2Path, body, set(keyHeader, key)).record(t)["pk"], first, "pk of %q", key)
	}
	// White space around a field value is not part of it (RFC 9110 section 5.5).
	again := h.post(t, oauth2Path, body, set(keyHeader, " a\t"))
	processtest.Expect(t, again.replayed(), "white space around the key makes another key")
	for _, keys := range [][]string{
		{""}, {" "}, {"a b"}, {"a\tb"}, {"ü"}, {"a\x80"}, {strings.Repeat("x", 256)}, {"a", "b"}, {"a", "a"}, {"", "a"},
	} {
		h.post(t, oauth2Path, "not even JSON", set(keyHeader, keys...)).problem(t, http.StatusBadRequest, "invalid-header")
	}
}

// A renewed token, which has another text and the same name, keeps its keys. Those of another name are others.
func TestKeyBelongsToNameAndOperation(t *testing.T) {
	h := startParallel(t)
	body, key := encode(t, minimal(oauth2Path)), set(keyHeader, "key")
	first := h.post(t, oauth2Path, body, key).record(t)["pk"]
	for name, isReplay := range map[string]bool{"test": true, "other": false} {
		token := h.newToken(t, name, time.Hour, oauth2Operation)
		got := h.post(t, oauth2Path, body, key, set("Authorization", "Bearer "+token))
		if pk := got.record(t)["pk"]; got.replayed() != isReplay || (pk == first) != isReplay {
			t.Errorf("with a token of %s, the key of provider %v gives provider %v", name, first, pk)
		}
	}
	processtest.Expect(t, !h.post(t, workspaceDirectoryPath, encode(t, minimal(workspaceDirectoryPath)), key).replayed(),
		"the other operation replays a create")
}

// bothWays sends a body with a key, and then another body, as a validation and as a create. They must differ in these
// fields, which the detail names; if there are none, the answer must be a replay.
func (h *harness) bothWays(t *testing.T, key, path string, first, second map[string]any, fields ...string) {
	t.Helper()
	pk := h.post(t, path, encode(t, first), set(keyHeader, key)).record(t)["pk"]
	for _, query := range []string{validateOnly, ""} {
		got := h.post(t, path+query, encode(t, second), set(keyHeader, key))
		var answer map[string]any
		got.decode(t, &answer)
		isWanted := answer["pk"] == pk
		if len(fields) == 0 {
			isWanted = isWanted && got.replayed()
		} else {
			problem, entries := got.problem(t, http.StatusUnprocessableEntity, "idempotency-key-reused"), []string{}
			for _, field := range fields {
				entries = append(entries, "/"+field+" differs")
				isWanted = isWanted && strings.Contains(problem.Detail, field)
			}
			isWanted = isWanted && slices.Equal(violations(problem), entries)
		}
		processtest.Expect(t, isWanted,
			"%s, then %s: the answer is %s, want %v and different %q", encode(t, first), encode(t, second), got.body, pk, fields)
	}
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
				different := func(value any) string { return encode(t, value) }
				values := rapid.SliceOfNDistinct(validNotNull(of.request.Properties[name].Value), 2, 2, different).Example(0)
				h.bothWays(t, name, of.path, with(body, name, values[0]), with(body, name, values[1]), name)
			}
		})
	}
}

// Fields are listed in the order of the contract. Omitted and explicit defaults are equal, and so are notations of JSON.
// Bodies that mean the same are replays.
func TestReusedKeyComparesMeaning(t *testing.T) {
	h := startParallel(t)
	oauth2, directory := minimal(oauth2Path), minimal(workspaceDirectoryPath)
	public := with(oauth2, "client_type", "public")
	key := func(text string) map[string]any { return with(directory, "credentials", json.RawMessage(text)) }
	uris := func(text string) map[string]any { return with(oauth2, "redirect_uris", text) }
	const other = "4f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"
	for title, test := range map[string]struct {
		path          string
		first, second map[string]any
		differ        string
	}{
		"a default":              {oauth2Path, oauth2, with(oauth2, "sub_mode", "hashed_user_id"), ""},
		"another than a default": {oauth2Path, oauth2, with(oauth2, "sub_mode", "user_id"), "sub_mode"},
		"a null":                 {oauth2Path, with(oauth2, "signing_key", nil), oauth2, ""},
		"an empty list":          {oauth2Path, oauth2, with(oauth2, "jwks_sources", []any{}), ""},
		"a UUID in another case": {oauth2Path, oauth2, with(oauth2, "authorization_flow", strings.ToUpper(flow)), ""},
		"no client_id after one": {oauth2Path, with(oauth2, "client_id", "own"), oauth2, "client_id"},
		"a client_id after none": {oauth2Path, oauth2, with(oauth2, "client_id", "late"), "client_id"},
		"no secret after one":    {oauth2Path, with(oauth2, "client_secret", "own"), oauth2, "client_secret"},
		"an empty secret":        {oauth2Path, with(oauth2, "client_secret", ""), oauth2, "client_secret"},
		"no secret of a public":  {oauth2Path, with(public, "client_secret", ""), public, ""},
		"public after a secret":  {oauth2Path, oauth2, public, "client_type client_secret"},
		"a secret of a public":   {oauth2Path, public, with(public, "client_secret", "s"), "client_secret"},
		"many fields": {oauth2Path, oauth2, map[string]any{
			"redirect_uris": "https://app.example.com/", "client_secret": "s", "client_id": "c", "name": "m",
			"authorization_flow": flow, "property_mappings": []string{flow},
		}, "name property_mappings client_id client_secret redirect_uris"},
		"a set in another order": {
			oauth2Path, with(with(oauth2, "property_mappings", []string{flow, other}), "jwks_sources", []string{flow, other}),
			with(with(oauth2, "property_mappings", []string{other, flow, other}), "jwks_sources", []string{other, flow}), "",
		},
		"other line ends":  {oauth2Path, uris("https://a.example.com/\nb:c"), uris("https://a.example.com/\r\nb:c\r\n"), ""},
		"a default action": {workspaceDirectoryPath, with(directory, "user_delete_action", "do_nothing"), directory, ""},
		"the order of members and a default": {
			workspaceDirectoryPath, key(`{"a":1,"b":{"c":"<é/","d":2}}`),
			with(key(`{ "b":{"d":2,"c":"\u003c\u00e9\/"},"a":1 }`), "filter_group", nil), "",
		},
	} {
		h.bothWays(t, strings.ReplaceAll(title, " ", "-"), test.path, test.first, test.second, strings.Fields(test.differ)...)
	}
}

// What the server has chosen equals an omitted value, and so does a request for exactly that value. Fields that lenient
// handling ignores do not matter.
func TestRetryMaySendGeneratedValues(t *testing.T) {
	h := startParallel(t)
	body, key := minimal(oauth2Path), set(keyHeader, "chosen")
	first := h.post(t, oauth2Path, encode(t, body), key)
	record := first.record(t)
	chosen := with(with(body, "client_id", record["client_id"]), "client_secret", record["client_secret"])
	for title, again := range map[string]map[string]any{
		"the values": chosen, "a field that is ignored": with(chosen, "x", 1),
		"the client_id": with(body, "client_id", record["client_id"]), "nothing": body,
	} {
		got := h.post(t, oauth2Path, encode(t, again), key, set("Prefer", "handling=lenient"))
		processtest.Expect(t, got.replayed() && string(got.body) == string(first.body),
			"%s: %d %s", title, got.status, got.body)
		validated := h.post(t, oauth2Path+validateOnly, encode(t, again), key, set("Prefer", "handling=lenient"))
		processtest.Expect(t, validated.replayed(), "%s: the validation is %d %s", title, validated.status, validated.body)
	}
	// A value of the first request is not taken for one that the server chose, even if it looks like one.
	h.bothWays(t, "sent", oauth2Path, with(with(body, "client_id", strings.Repeat("a", 40)), "client_secret", strings.Repeat("a", 128)),
		body, "client_id", "client_secret")
}
