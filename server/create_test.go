package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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
	got.wantEntries(t,
		"/name null", "/authorization_flow required", "/client_id empty", "/client_secret nul",
		"/access_code_validity invalid_duration", "/include_claims_in_id_token type", "/redirect_uris invalid_uri",
		"/issuer_mode enum", "/jwks_sources/0 invalid_uuid", "/jwks_sources/2 null",
		"/zzz unknown_field", "/pk unknown_field", "/Client_Type unknown_field", "/a~1b~0c unknown_field")
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

func TestNULInFreeFormObjects(t *testing.T) {
	t.Parallel()
	h := start(t)
	const body = `{"name":"n","delegated_subject":"a@b","default_group_email_domain":"b",` +
		`"credentials":{"a":"\u0000","b":[1,{"c":"x\u0000y"}],"d\u0000":"\u0000","e":"\\u0000"}}`
	h.post(t, workspaceDirectoryPath, body).
		wantEntries(t, "/credentials/a nul", "/credentials/b/1/c nul", "/credentials/d\x00 nul")
	h.post(t, workspaceDirectoryPath, `{"credentials":{"a":"\u0000"},"x":"\u0000"}`).wantEntries(t,
		"/name required", "/delegated_subject required", "/credentials/a nul", "/default_group_email_domain required",
		"/x unknown_field")
}

// TestOneRequestHasOneAnswer sends requests with fewer and fewer mistakes: the first check that fails decides the
// response.
func TestOneRequestHasOneAnswer(t *testing.T) {
	t.Parallel()
	h := start(t)
	other := h.newToken(t, "x", time.Hour, workspaceDirectoryOperation)
	large := `{"name":"` + strings.Repeat("x", 1<<20) + `"`
	taken := minimal(oauth2Path)
	taken["client_id"] = "taken-value"
	used := set(keyHeader, "used")
	h.post(t, oauth2Path, encode(t, taken), used).record(t)

	wrongType, html := set("Content-Type", "text/plain"), set("Accept", "text/html")
	none, forbidden := set("Authorization"), set("Authorization", "Bearer "+other)
	for _, test := range []struct {
		method, path, body string
		changes            []func(*http.Request)
		status             int
		slug               string
	}{
		{http.MethodPut, "/nowhere", large, []func(*http.Request){none, html, wrongType}, 404, "not-found"},
		{http.MethodPut, oauth2Path, large, []func(*http.Request){none, html, wrongType}, 405, "method-not-allowed"},
		{http.MethodPost, oauth2Path, large, []func(*http.Request){none, html, wrongType}, 401, "unauthorized"},
		{http.MethodPost, oauth2Path, large, []func(*http.Request){forbidden, html, wrongType}, 403, "forbidden"},
		{http.MethodPost, oauth2Path, large, []func(*http.Request){html, wrongType}, 406, "not-acceptable"},
		{http.MethodPost, oauth2Path, large, []func(*http.Request){wrongType}, 415, "unsupported-media-type"},
		{http.MethodPost, oauth2Path, large, nil, 413, "too-large"},
		{http.MethodPost, oauth2Path, `{"client_id":"taken-value"`, nil, 400, "malformed-json"},
		{http.MethodPost, oauth2Path, `{"client_id":"taken-value"}`, nil, 400, "validation-failed"},
		{http.MethodPost, oauth2Path, `{"client_id":"taken-value"}`, []func(*http.Request){used}, 400, "validation-failed"},
		{http.MethodPost, oauth2Path, encode(t, with(taken, "name", "other")), []func(*http.Request){used}, 422, "idempotency-key-reused"},
		{http.MethodPost, oauth2Path, encode(t, taken), nil, 409, "client-id-taken"},
	} {
		changes := append([]func(*http.Request){
			set("Authorization", "Bearer "+h.token), set("Content-Type", "application/json"),
		}, test.changes...)
		got := h.send(t, test.method, test.path, strings.NewReader(test.body), changes...)
		problem := got.problem(t, test.status, test.slug)
		if test.status == http.StatusConflict &&
			(!slices.Equal(violations(problem), []string{"/client_id taken"}) || strings.Contains(string(got.body), "taken-value")) {
			t.Errorf("the conflict is %s", got.body)
		}
		const challenge = `Bearer realm="providerd", error="insufficient_scope", scope="providers_oauth2_create"`
		if given := got.header.Get("WWW-Authenticate"); test.status == http.StatusForbidden && given != challenge {
			t.Errorf("the challenge is %s, want %s", given, challenge)
		}
	}
	// Case matters, and names may be the same.
	taken["client_id"] = "Taken-Value"
	h.post(t, oauth2Path, encode(t, taken)).record(t)
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	h, exact := start(t), largestBody("x")
	chunked := func(request *http.Request) { request.ContentLength = -1 }
	h.post(t, workspaceDirectoryPath, exact).record(t)
	h.post(t, workspaceDirectoryPath, exact, chunked).record(t)
	h.post(t, workspaceDirectoryPath, exact+" ").problem(t, http.StatusRequestEntityTooLarge, "too-large")
	h.post(t, workspaceDirectoryPath, exact+" ", chunked).problem(t, http.StatusRequestEntityTooLarge, "too-large")
}
