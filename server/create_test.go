package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"example.com/providerd/server/contracttest"
	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// A record has the constants of its kind, no application, and is kept neither by caches nor for pages of other origins.
func TestRecordHasConstantFields(t *testing.T) {
	t.Parallel()
	h := start(t)
	for path, want := range map[string]string{
		oauth2Path: `{"component":"provider-oauth2-form","verbose_name":"OAuth2/OpenID Provider",` +
			`"verbose_name_plural":"OAuth2/OpenID Providers","meta_model_name":"providers_oauth2.oauth2provider",` +
			`"assigned_application_slug":"","assigned_application_name":"",` +
			`"assigned_backchannel_application_slug":"","assigned_backchannel_application_name":""}`,
		workspaceDirectoryPath: `{"component":"provider-workspace-directory-form","verbose_name":"Workspace Directory Provider",` +
			`"verbose_name_plural":"Workspace Directory Providers",` +
			`"meta_model_name":"providers_workspace_directory.workspacedirectoryprovider",` +
			`"assigned_backchannel_application_slug":"","assigned_backchannel_application_name":""}`,
	} {
		got := h.post(t, path, encode(t, minimal(path)), set("Origin", "https://other.example.com"))
		record := got.record(t)
		constants := maps.Clone(record)
		if err := contracttest.Decode([]byte(want), &constants); err != nil || !reflect.DeepEqual(constants, record) {
			t.Errorf("%s: the record is %v, want %s, %v", path, record, want, err)
		}
		if got.header.Get("Cache-Control") != "no-store" || got.header.Get("Location") != "" ||
			got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: header is %v", path, got.header)
		}
	}
}

func TestPublicClientGetsNoSecret(t *testing.T) {
	t.Parallel()
	h := start(t)
	for want, members := range map[string]string{
		"": `"client_type":"public"`, "sent": `"client_type":"public","client_secret":"sent"`,
	} {
		if secret := h.post(t, oauth2Path, oauth2With(members)).record(t)["client_secret"]; secret != want {
			t.Errorf("client_secret is %q, want %q", secret, want)
		}
	}
}

// Members keep their order, and numbers their digits. They are stored in the shortest form, because the body of a
// replay may be that short, and its response must not be much longer.
func TestCredentialsAreReturnedAsSent(t *testing.T) {
	t.Parallel()
	h := start(t)
	const sent = `{"f" : 9007199254740993,"b":123456789012345678901234567890, "c":1.10,"d":1e400,` +
		"\n" + `"e":-0,"\u0061":[1E+2,"\u003c\/\u00e9\ud83d\ude00"]}`
	const want = `{"f":9007199254740993,"b":123456789012345678901234567890,"c":1.10,"d":1e400,"e":-0,"a":[1E+2,"</é😀"]}`
	got := h.post(t, workspaceDirectoryPath, directoryWith(sent))
	if !strings.Contains(string(got.body), `"credentials":`+strings.Replace(want, "<", `\u003c`, 1)) {
		t.Errorf("credentials %s come back in %s", sent, got.body)
	}
	record, err := h.database.Provider(t.Context(), 1)
	processtest.Must(t, err)
	if provider, ok := record.(store.WorkspaceDirectoryProvider); !ok || provider.Credentials.Reveal() != want {
		t.Errorf("stored are %s, want %s", provider.Credentials.Reveal(), want)
	}
}

func TestAllViolationsComeAtOnceInOrder(t *testing.T) {
	t.Parallel()
	h := start(t)
	got := h.post(t, oauth2Path, `{
		"zzz": 1, "pk": 7, "jwks_sources": ["x", "`+flow+`", null], "issuer_mode": "GLOBAL", "redirect_uris": "https://a\nb c\n\n",
		"include_claims_in_id_token": "yes", "client_id": "", "client_secret": "a\u0000b", "access_code_validity": "1h",
		"Client_Type": "evil", "name": null, "a/b~c": 1
	}`)
	problem := got.problem(t, http.StatusBadRequest, "validation-failed")
	want := []string{
		"/name null", "/authorization_flow required", "/client_id empty", "/client_secret nul",
		"/access_code_validity invalid_duration", "/include_claims_in_id_token type", "/redirect_uris invalid_uri",
		"/issuer_mode enum", "/jwks_sources/0 invalid_uuid", "/jwks_sources/2 null",
		"/zzz unknown_field", "/pk unknown_field", "/Client_Type unknown_field", "/a~1b~0c unknown_field",
	}
	if list := violations(problem); !reflect.DeepEqual(list, want) {
		t.Errorf("entries are\n%q, want\n%q", list, want)
	}
	for _, sentence := range []string{"` line 2 must", "global, per_provider"} {
		if !strings.Contains(string(got.body), sentence) {
			t.Errorf("%q is not in %s", sentence, got.body)
		}
	}
	for _, value := range []string{"evil", "yes", "b c", "1h"} {
		if strings.Contains(string(got.body), `"`+value) {
			t.Errorf("the answer repeats the value %q: %s", value, got.body)
		}
	}
}

// A pk is an integer of 64 bits. Up to 2^53-1, every JSON library reads it exactly.
func TestLargestPK(t *testing.T) {
	t.Parallel()
	h := start(t)
	body, key := encode(t, minimal(oauth2Path)), set(keyHeader, "last")
	h.post(t, oauth2Path, body).record(t)
	storetest.Execute(t, h.path, "UPDATE sqlite_sequence SET seq = 9007199254740990 WHERE name = 'providers'")
	first := h.post(t, oauth2Path, body, key).record(t)["pk"]
	if again := h.post(t, oauth2Path, body, key).record(t)["pk"]; fmt.Sprint(first) != "9007199254740991" || again != first {
		t.Errorf("pk is %v, then %v", first, again)
	}
	other := h.post(t, oauth2Path, encode(t, with(minimal(oauth2Path), "name", "m")), key)
	if problem := other.problem(t, http.StatusUnprocessableEntity, "idempotency-key-reused"); *problem.PK != 9007199254740991 {
		t.Errorf("pk of the reused key is %v", *problem.PK)
	}
}
