package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

const keyHeader = "Idempotency-Key"

// replayed reports whether the response repeats that of an earlier request.
func (a answer) replayed() bool { return a.header.Get("Idempotency-Replayed") == "true" }

// A retry gets the same response until the record is linked to an application.
func TestRetryGetsTheSameRecord(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, path := range []string{oauth2Path, workspaceDirectoryPath} {
		body := encode(t, minimal(path))
		first := h.post(t, path, body, set(keyHeader, "key"))
		again := h.post(t, path, body, set(keyHeader, "key"))
		if first.replayed() || !again.replayed() || string(again.body) != string(first.body) {
			t.Errorf("%s: first %v %s, then %v %s", path, first.replayed(), first.body, again.replayed(), again.body)
		}
	}
	pk := int64(1)
	_, err := h.database.CreateApplication(t.Context(), store.Application{Slug: "shop", Name: "Shop", ProviderPK: &pk})
	processtest.Must(t, err)
	record := h.post(t, oauth2Path, encode(t, minimal(oauth2Path)), set(keyHeader, "key")).record(t)
	if slug := record["assigned_application_slug"]; slug != "shop" {
		t.Errorf("assigned_application_slug is %q", slug)
	}
}

// TestRetryOfDamagedRecord corrupts secrets and lists of records. Retries fail permanently, and other creates are not
// affected.
func TestRetryOfDamagedRecord(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, test := range []struct{ path, statement, cause string }{
		{oauth2Path, "UPDATE providers SET secret = x'00'", "secret: sealed secret is damaged"},
		{oauth2Path, "UPDATE providers SET property_mappings = '{bad'", "its row is damaged: property_mappings is not a list: "},
		{oauth2Path, "UPDATE providers SET authorization_flow = 'bad'", "its row is damaged"},
		{workspaceDirectoryPath, "UPDATE providers SET secret = x'0000'", "secret: sealed secret is damaged"},
		{
			workspaceDirectoryPath, "UPDATE providers SET property_mappings_group = '{bad'",
			"its row is damaged: property_mappings_group is not a list: ",
		},
	} {
		request := minimal(test.path)
		body, key := encode(t, request), set(keyHeader, strings.ReplaceAll(test.statement, " ", "_"))
		pk := h.post(t, test.path, body, key).record(t)["pk"]
		storetest.Execute(t, h.path, test.statement)
		request["name"] = "another"
		for _, retry := range []string{body, encode(t, request)} {
			for _, query := range []string{"", validateOnly} {
				got := h.post(t, test.path+query, retry, key)
				problem := got.problem(t, http.StatusServiceUnavailable, "storage-unavailable")
				if !strings.Contains(problem.Detail, "The record that") || got.header.Get("Retry-After") != "86400" {
					t.Errorf("%s: Retry-After is %q, detail %s", test.statement, got.header.Get("Retry-After"), problem.Detail)
				}
			}
		}
		if cause := fmt.Sprintf("provider %v: %s", pk, test.cause); strings.Count(h.log.String(), cause) != 4 {
			t.Errorf("%s: not all lines have %q: %s", test.statement, cause, h.log)
		}
		h.post(t, test.path, body).record(t)
	}
}

func TestKeyIsLiteral(t *testing.T) {
	t.Parallel()
	h := start(t)
	body := encode(t, minimal(oauth2Path))
	seen := map[any]string{}
	for _, key := range []string{
		"a", "A", `"a"`, "'a'", "a,b", "a;b=c", "%61", "a%", "%zz", "a+b", "a=b", "a/b?c#d", `\`, `"`, "{}", "[1]", "null", "1", "~!",
		strings.Repeat("x", 255),
	} {
		first := h.post(t, oauth2Path, body, set(keyHeader, key)).record(t)["pk"]
		if other, ok := seen[first]; ok {
			t.Errorf("%q is taken for %q", key, other)
		}
		seen[first] = key
		if again := h.post(t, oauth2Path, body, set(keyHeader, key)).record(t)["pk"]; again != first {
			t.Errorf("%q gives %v and %v", key, first, again)
		}
	}
	// White space around a field value is not part of it (RFC 9110 section 5.5).
	if again := h.post(t, oauth2Path, body, set(keyHeader, " a\t")); !again.replayed() {
		t.Error("white space around the key makes another key")
	}
}

func TestInvalidKey(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, keys := range [][]string{
		{""}, {" "}, {"a b"}, {"a\tb"}, {"ü"}, {"a\x80"}, {strings.Repeat("x", 256)}, {"a", "b"}, {"a", "a"}, {"", "a"},
	} {
		h.post(t, oauth2Path, "not even JSON", set(keyHeader, keys...)).problem(t, http.StatusBadRequest, "invalid-header")
	}
}

// A renewed token, which has another text and the same name, keeps its keys. Those of another name are others.
func TestKeyBelongsToNameAndOperation(t *testing.T) {
	t.Parallel()
	h := start(t)
	body, key := encode(t, minimal(oauth2Path)), set(keyHeader, "key")
	first := h.post(t, oauth2Path, body, key).record(t)["pk"]
	for name, isReplay := range map[string]bool{"test": true, "other": false} {
		token := h.newToken(t, name, time.Hour, oauth2Operation)
		got := h.post(t, oauth2Path, body, key, set("Authorization", "Bearer "+token))
		if pk := got.record(t)["pk"]; got.replayed() != isReplay || (pk == first) != isReplay {
			t.Errorf("with a token of %s, the key of provider %v gives provider %v", name, first, pk)
		}
	}
	if h.post(t, workspaceDirectoryPath, encode(t, minimal(workspaceDirectoryPath)), key).replayed() {
		t.Error("the other operation replays a create")
	}
}
