package server_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/records"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// A record has the constants of its kind, no application, and is kept neither by caches nor for pages of other origins.
// That of a public client has no secret unless one is sent.
func TestRecordHasConstantFields(t *testing.T) {
	h := startParallel(t)
	for _, test := range []struct{ path, body, want string }{
		{oauth2Path, oauth2With(`"client_type":"public"`), `{"client_secret":""}`},
		{oauth2Path, oauth2With(`"client_type":"public","client_secret":"sent"`), `{"client_secret":"sent"}`},
		{oauth2Path, encode(t, minimal(oauth2Path)), `{"component":"provider-oauth2-form","verbose_name":"OAuth2/OpenID Provider",` +
			`"verbose_name_plural":"OAuth2/OpenID Providers","meta_model_name":"providers_oauth2.oauth2provider",` +
			`"assigned_application_slug":"","assigned_application_name":"",` +
			`"assigned_backchannel_application_slug":"","assigned_backchannel_application_name":""}`},
		{workspaceDirectoryPath, directoryWith("{}"), `{"component":"provider-workspace-directory-form",` +
			`"verbose_name":"Workspace Directory Provider","verbose_name_plural":"Workspace Directory Providers",` +
			`"meta_model_name":"providers_workspace_directory.workspacedirectoryprovider",` +
			`"assigned_backchannel_application_slug":"","assigned_backchannel_application_name":""}`},
	} {
		got := h.post(t, test.path, test.body, set("Origin", "https://other.example.com"))
		record := got.record(t)
		constants := maps.Clone(record)
		if err := contracttest.Decode([]byte(test.want), &constants); err != nil || !reflect.DeepEqual(constants, record) {
			t.Errorf("%s: the record is %v, want %s, %v", test.body, record, test.want, err)
		}
		processtest.Expect(t, got.header.Get("Cache-Control") == "no-store" && got.header.Get("Location") == "" &&
			got.header.Get("Access-Control-Allow-Origin") == "", "%s: header is %v", test.body, got.header)
	}
}

// Members keep their order, and numbers their digits. They are stored in the shortest form, because the body of a
// replay may be that short, and its response must not be much longer.
func TestCredentialsAreReturnedAsSent(t *testing.T) {
	h := startParallel(t)
	const sent = `{"f" : 9007199254740993,"b":123456789012345678901234567890, "c":1.10,"d":1e400,` +
		"\n" + `"e":-0,"\u0061":[1E+2,"\u003c\/\u00e9\ud83d\ude00"]}`
	const want = `{"f":9007199254740993,"b":123456789012345678901234567890,"c":1.10,"d":1e400,"e":-0,"a":[1E+2,"</é😀"]}`
	got := h.post(t, workspaceDirectoryPath, directoryWith(sent))
	processtest.Contains(t, string(got.body), `"credentials":`+strings.Replace(want, "<", `\u003c`, 1))
	record := processtest.Try(h.database.Providers.Get(t.Context(), 1)).Must(t)
	if provider, ok := record.(records.WorkspaceDirectoryProvider); !ok || provider.Credentials.Reveal() != want {
		t.Errorf("stored are %s, want %s", provider.Credentials.Reveal(), want)
	}
}

func TestAllViolationsComeAtOnceInOrder(t *testing.T) {
	got := startParallel(t).post(t, oauth2Path, `{
		"zzz": 1, "pk": 7, "jwks_sources": ["x", "`+flow+`", null], "issuer_mode": "GLOBAL", "redirect_uris": "https://a\nhttps://b, c://d\n\n",
		"include_claims_in_id_token": "yes", "client_id": "", "client_secret": "a\u0000b", "access_code_validity": "1h",
		"Client_Type": "evil", "name": null, "a/b~c": 1
	}`)
	got.wantEntries(t,
		"/name null", "/authorization_flow required", "/client_id empty", "/client_secret nul",
		"/access_code_validity invalid_duration", "/include_claims_in_id_token type", "/redirect_uris invalid_uri",
		"/issuer_mode enum", "/jwks_sources/0 invalid_uuid", "/jwks_sources/2 null",
		"/zzz unknown_field", "/pk unknown_field", "/Client_Type unknown_field", "/a~1b~0c unknown_field")
	for _, sentence := range []string{"` line 2 has several URIs; put each on a line of its own", "global, per_provider"} {
		processtest.Contains(t, string(got.body), sentence)
	}
	for _, value := range []string{"evil", "yes", "https://b", "1h"} {
		processtest.Expect(t, !strings.Contains(string(got.body), `"`+value), "%q is repeated in %s", value, got.body)
	}
}

// A pk is an integer of 64 bits. Up to 2^53-1, every JSON library reads it exactly.
func TestLargestPK(t *testing.T) {
	h := startParallel(t)
	body, key := encode(t, minimal(oauth2Path)), set(keyHeader, "last")
	h.post(t, oauth2Path, body).record(t)
	storetest.Execute(t, h.path, "UPDATE providers SET pk = 9007199254740990")
	first := h.post(t, oauth2Path, body, key).record(t)["pk"]
	again := h.post(t, oauth2Path, body, key).record(t)["pk"]
	processtest.Expect(t, fmt.Sprint(first) == "9007199254740991" && again == first, "pk is %v, then %v", first, again)
	other := h.post(t, oauth2Path, encode(t, with(minimal(oauth2Path), "name", "m")), key)
	problem := other.problem(t, http.StatusUnprocessableEntity, "idempotency-key-reused")
	processtest.Equal(t, *problem.PK, 9007199254740991, "pk of the reused key")
}

func TestNULInFreeFormObjects(t *testing.T) {
	h := startParallel(t)
	const body = `{"name":"n","delegated_subject":"a@b","default_group_email_domain":"b",` +
		`"credentials":{"a":"\u0000","b":[1,{"c":"x\u0000y"}],"d\u0000":"\u0000","e":"\\u0000"}}`
	h.post(t, workspaceDirectoryPath, body).
		wantEntries(t, "/credentials/a nul", "/credentials/b/1/c nul", "/credentials/d\x00 nul")
	h.post(t, workspaceDirectoryPath, `{"credentials":{"a":"\u0000"},"x":"\u0000"}`).wantEntries(t,
		"/name required", "/delegated_subject required", "/credentials/a nul", "/default_group_email_domain required",
		"/x unknown_field")
}

// TestOneRequestHasOneAnswer sends fewer and fewer mistakes: the first check that fails decides the response.
func TestOneRequestHasOneAnswer(t *testing.T) {
	h := startParallel(t)
	other := h.newToken(t, "x", time.Hour, workspaceDirectoryOperation)
	large := `{"name":"` + strings.Repeat("x", 1<<20) + `"`
	taken := minimal(oauth2Path)
	taken["client_id"] = "taken-value"
	used := set(keyHeader, "used")
	h.post(t, oauth2Path, encode(t, taken), used).record(t)

	put := func(request *http.Request) { request.Method = http.MethodPut }
	wrongType, html := set("Content-Type", "text/plain"), set("Accept", "text/html")
	none, forbidden := set("Authorization"), set("Authorization", "Bearer "+other)
	misplaced := set("Validate_only", "true")
	for _, test := range []struct {
		path, body string
		changes    []func(*http.Request)
		status     int
		slug       string
	}{
		{"/nowhere", large, []func(*http.Request){put, none, html, wrongType, misplaced}, 404, "not-found"},
		{oauth2Path, large, []func(*http.Request){put, none, html, wrongType, misplaced}, 405, "method-not-allowed"},
		{oauth2Path, large, []func(*http.Request){none, html, wrongType, misplaced}, 401, "unauthorized"},
		{oauth2Path, large, []func(*http.Request){forbidden, html, wrongType, misplaced}, 403, "forbidden"},
		{oauth2Path, large, []func(*http.Request){html, wrongType, misplaced}, 406, "not-acceptable"},
		{oauth2Path, large, []func(*http.Request){wrongType, misplaced}, 415, "unsupported-media-type"},
		{oauth2Path, large, []func(*http.Request){misplaced}, 413, "too-large"},
		{oauth2Path + "?x", "{", []func(*http.Request){misplaced}, 400, "invalid-parameter"},
		{oauth2Path, "{", []func(*http.Request){misplaced}, 400, "invalid-header"},
		{oauth2Path, `{"client_id":"taken-value"`, nil, 400, "malformed-json"},
		{oauth2Path, `{"client_id":"taken-value"}`, nil, 400, "validation-failed"},
		{oauth2Path, `{"client_id":"taken-value"}`, []func(*http.Request){used}, 400, "validation-failed"},
		{oauth2Path, encode(t, with(taken, "name", "other")), []func(*http.Request){used}, 422, "idempotency-key-reused"},
		{oauth2Path, encode(t, taken), nil, 409, "client-id-taken"},
	} {
		got := h.post(t, test.path, test.body, test.changes...)
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

// maxAnswer is the length of the response with the longest list of violations, which has 1 MiB.
const maxAnswer = 1<<20 + 1<<10

func repeated(part string, length int) string { return strings.Repeat(part, length/len(part)) }

func manyMembers(length int) string {
	var members strings.Builder
	for i := 0; members.Len() < length; i++ {
		fmt.Fprintf(&members, `"%x":1,`, i)
	}
	return strings.TrimSuffix(members.String(), ",")
}

// The lists are bounded for bodies that break at least a thousand rules, or one in a place whose description is long, and
// so is the memory for finding and listing violations, garbage included, which must not grow with their number times the
// length of names. The test is not parallel, because allocations are counted for the whole process.
func TestListsOfViolationsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	target := newTarget(t)
	target.into = bytes.NewBuffer(make([]byte, 0, 2*maxAnswer))
	const large = 1<<20 - 200
	longName := strings.Repeat("k", 50_000)
	for name, test := range map[string]struct {
		body    string
		entries int
		// isCut is true if not all entries are listed.
		isCut bool
		// first and last are entries of the list; empty if they do not matter.
		first, last string
	}{
		"1,000 elements": {
			oauth2With(`"property_mappings":[` + strings.Repeat("1,", 999) + "1]"), 1000, false,
			"/property_mappings/0 type", "/property_mappings/999 type",
		},
		"1,001 elements": {
			oauth2With(`"property_mappings":[` + strings.Repeat("1,", 1000) + "1]"), 1000, true,
			"/property_mappings/0 type", "/property_mappings/999 type",
		},
		"unknown fields": {"{" + manyMembers(large/4) + "}", 1000, true, "/name required", "/3e5 unknown_field"},
		"the order of the contract": {
			`{` + manyMembers(large/4) + `,"jwks_sources":[` + repeated("1,", large/4) + `1],"sub_mode":1,` +
				`"property_mappings":[` + repeated("1,", 1000) + `1],"authorization_flow":null}`, 1000, true,
			"/name required", "/jwks_sources/495 type",
		},
		"U+0000 under a long name": {
			directoryWith(`{"` + longName + `":[` + repeated(`"\u0000",`, 45_000) + "5]}"), 20, true,
			"/credentials/" + longName + "/0 nul", "/credentials/" + longName + "/19 nul",
		},
		"U+0000 under a name of more than half the list": {
			directoryWith(`{"` + strings.Repeat("k", 600_000) + `":[` + repeated(`"\u0000",`, 400_000) + "0]}"), 1, true, "", "",
		},
		"U+0000 in names": {directoryWith(`{"` + repeated(`\u0000`, large-100) + `":"\u0000"}`), 1, false, "", ""},
		"U+0000 at 60 levels": {
			directoryWith(strings.Repeat(`{"`+strings.Repeat("k", 10_000)+`":`, 60) + `["\u0000","\u0000"]` + strings.Repeat("}", 60)),
			1, true, "", "",
		},
		"a long unknown name":                 {oauth2With(`"` + strings.Repeat("k", large-100) + `":1`), 1, false, "", ""},
		"a longer pointer to an unknown name": {oauth2With(`"` + strings.Repeat("/", large-100) + `":1`), 1, false, " unknown_field", ""},
		"an unknown name that is escaped":     {oauth2With(`"` + strings.Repeat("<", large-100) + `":1`), 1, false, " unknown_field", ""},
		"a long pointer to U+0000": {
			directoryWith(`{"` + strings.Repeat("<", large-100) + `":"\u0000"}`), 1, false, "/credentials nul", "/credentials nul",
		},
	} {
		path := map[bool]string{false: oauth2Path, true: workspaceDirectoryPath}[strings.Contains(test.body, "credentials")]
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := target.post(path, test.body)
		runtime.ReadMemStats(&after)
		allocated, bound := after.TotalAlloc-before.TotalAlloc, uint64(8<<20+128*len(test.body))
		processtest.Expect(t, allocated <= bound,
			"%s: %d KiB were allocated for %d bytes, want at most %d", name, allocated>>10, len(test.body), bound>>10)
		processtest.CheckAs(t, got.check(path), "%s", name)
		problem := got.problem(t, http.StatusBadRequest, "validation-failed")
		entries := violations(problem)
		if len(got.body) > maxAnswer || len(entries) != test.entries {
			t.Errorf("%s: %d entries in an answer of %d bytes, want %d in at most %d", name, len(entries), len(got.body),
				test.entries, maxAnswer)
			continue
		}
		if test.first != "" && entries[0] != test.first || test.last != "" && entries[len(entries)-1] != test.last {
			t.Errorf("%s: entries are %.100q to %.100q, want %.100q to %.100q", name, entries[0], entries[len(entries)-1],
				test.first, test.last)
		}
		processtest.Equal(t, strings.Contains(problem.Detail, "more violations than the"),
			test.isCut, "%s: whether there are more, by %q", name, problem.Detail)
	}
}

// The bound is on the violations, not on the request.
func TestLargeListIsAccepted(t *testing.T) {
	h := startParallel(t)
	list := `"property_mappings":[` + strings.Repeat(`"`+flow+`",`, 19_999) + `"` + flow + `"`
	mappings, ok := h.post(t, oauth2Path, oauth2With(list+"]")).record(t)["property_mappings"].([]any)
	processtest.Expect(t, ok && len(mappings) == 20_000, "%d mappings come back", len(mappings))
	h.post(t, oauth2Path, oauth2With(list+`,"x"]`)).wantEntries(t, "/property_mappings/20000 invalid_uuid")
}
