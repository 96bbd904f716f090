package server_test

import (
	"net/http"
	"slices"
	"testing"
)

func TestLenientHandlingIgnoresUnknownFields(t *testing.T) {
	t.Parallel()
	h := start(t)
	body := minimal(oauth2Path)
	body["pk"], body["Client_Type"], body["x\x00"] = 7, "evil", map[string]any{"a\x00": 1}
	for _, prefer := range []string{
		"handling=lenient", "Handling=LENIENT", `handling="lenient"`, `handling = "lenient"`,
		"respond-async, handling=lenient; x=1", "respond-async\nhandling=lenient", `x="a, b", handling=lenient`,
		"\nhandling=lenient", "handling=lenient, handling=strict", "=, ;, handling=lenient",
	} {
		got := h.post(t, oauth2Path, encode(t, body), setLines("Prefer", prefer))
		record := got.record(t)
		if record["client_type"] != "confidential" || record["pk"] == 7 {
			t.Errorf("Prefer %q: an ignored field is in the record: %v", prefer, record)
		}
		if applied := got.header.Get("Preference-Applied"); applied != "handling=lenient" {
			t.Errorf("Prefer %q: Preference-Applied is %q", prefer, applied)
		}
	}
	for _, prefer := range []string{
		none, "", "handling", "handling=strict", "handling=strict, handling=lenient", "respond-async",
		`x="handling=lenient"`, "x; handling=lenient", `handling="lenient`, "handling=lenient2", "handlings=lenient",
		`x="\", handling=lenient"`, "\x80", "handling=\"\\",
	} {
		got := h.post(t, oauth2Path, encode(t, body), setLines("Prefer", prefer))
		got.problem(t, http.StatusBadRequest, "validation-failed")
		if applied := got.header.Get("Preference-Applied"); applied != "" {
			t.Errorf("Prefer %q: Preference-Applied is %q", prefer, applied)
		}
	}
}

func TestLenientHandlingKeepsEveryOtherRule(t *testing.T) {
	t.Parallel()
	h := start(t)
	lenient := set("Prefer", "handling=lenient")
	got := h.post(t, oauth2Path, `{"x":1,"name":"","sub_mode":"x"}`, lenient)
	problem := got.problem(t, http.StatusBadRequest, "validation-failed")
	want := []string{"/name empty", "/authorization_flow required", "/sub_mode enum"}
	if list := violations(problem); !slices.Equal(list, want) {
		t.Errorf("entries are %q, want %q", list, want)
	}
	if got.header.Get("Preference-Applied") != "handling=lenient" {
		t.Errorf("Preference-Applied is %q", got.header.Get("Preference-Applied"))
	}
	h.post(t, oauth2Path, `{"x":1,"x":2}`, lenient).problem(t, http.StatusBadRequest, "malformed-json")
}

func TestNULInFreeFormObjects(t *testing.T) {
	t.Parallel()
	h := start(t)
	const body = `{"name":"n","delegated_subject":"a@b","default_group_email_domain":"b",` +
		`"credentials":{"a":"\u0000","b":[1,{"c":"x\u0000y"}],"d\u0000":"\u0000","e":"\\u0000"}}`
	problem := h.post(t, workspaceDirectoryPath, body).problem(t, http.StatusBadRequest, "validation-failed")
	want := []string{"/credentials/a nul", "/credentials/b/1/c nul", "/credentials/d\x00 nul"}
	if list := violations(problem); !slices.Equal(list, want) {
		t.Errorf("entries are %q, want %q", list, want)
	}
	got := h.post(t, workspaceDirectoryPath, `{"credentials":{"a":"\u0000"},"x":"\u0000"}`)
	want = []string{
		"/name required", "/delegated_subject required", "/credentials/a nul", "/default_group_email_domain required",
		"/x unknown_field",
	}
	if list := violations(got.problem(t, http.StatusBadRequest, "validation-failed")); !slices.Equal(list, want) {
		t.Errorf("entries are %q, want %q", list, want)
	}
}
