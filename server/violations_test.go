package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// maxAnswer is the length of the response with the longest list of violations, which has 1 MiB.
const maxAnswer = 1<<20 + 1<<10

// directoryWith returns a body of a workspace directory-sync provider with credentials.
func directoryWith(credentials string) string {
	return `{"name":"n","delegated_subject":"a@b.c","default_group_email_domain":"b.c","credentials":` + credentials + `}`
}

// oauth2With returns a body of an OAuth2 provider with additional members.
func oauth2With(members string) string {
	return `{"name":"n","authorization_flow":"` + flow + `",` + members + `}`
}

// repeated returns a text with as many copies of a part as fit in a length.
func repeated(part string, length int) string { return strings.Repeat(part, length/len(part)) }

// manyMembers returns as many members with short names as fit in a length.
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
		path, body string
		entries    int
		// isCut is true if not all entries are listed.
		isCut bool
		// first and last are entries of the list; empty if they do not matter.
		first, last string
	}{
		"1,000 elements": {
			oauth2Path, oauth2With(`"property_mappings":[` + strings.Repeat("1,", 999) + "1]"), 1000, false,
			"/property_mappings/0 type", "/property_mappings/999 type",
		},
		"1,001 elements": {
			oauth2Path, oauth2With(`"property_mappings":[` + strings.Repeat("1,", 1000) + "1]"), 1000, true,
			"/property_mappings/0 type", "/property_mappings/999 type",
		},
		"unknown fields": {
			oauth2Path, "{" + manyMembers(large/4) + "}", 1000, true, "/name required", "/3e5 unknown_field",
		},
		"the order of the contract": {
			oauth2Path, `{` + manyMembers(large/4) + `,"jwks_sources":[` + repeated("1,", large/4) + `1],"sub_mode":1,` +
				`"property_mappings":[` + repeated("1,", 1000) + `1],"authorization_flow":null}`, 1000, true,
			"/name required", "/jwks_sources/495 type",
		},
		"U+0000 under a long name": {
			workspaceDirectoryPath, directoryWith(`{"` + longName + `":[` + repeated(`"\u0000",`, 45_000) + "5]}"), 20, true,
			"/credentials/" + longName + "/0 nul", "/credentials/" + longName + "/19 nul",
		},
		"U+0000 under a name of more than half the list": {
			workspaceDirectoryPath,
			directoryWith(`{"` + strings.Repeat("k", 600_000) + `":[` + repeated(`"\u0000",`, 400_000) + "0]}"), 1, true, "", "",
		},
		"U+0000 in names": {
			workspaceDirectoryPath, directoryWith(`{"` + repeated(`\u0000`, large-100) + `":"\u0000"}`), 1, false, "", "",
		},
		"U+0000 at 60 levels": {
			workspaceDirectoryPath,
			directoryWith(strings.Repeat(`{"`+strings.Repeat("k", 10_000)+`":`, 60) + `["\u0000","\u0000"]` + strings.Repeat("}", 60)),
			1, true, "", "",
		},
		"a long unknown name": {
			oauth2Path, oauth2With(`"` + strings.Repeat("k", large-100) + `":1`), 1, false, "", "",
		},
		"a longer pointer to an unknown name": {
			oauth2Path, oauth2With(`"` + strings.Repeat("/", large-100) + `":1`), 1, false, " unknown_field", "",
		},
		"an unknown name that is escaped": {
			oauth2Path, oauth2With(`"` + strings.Repeat("<", large-100) + `":1`), 1, false, " unknown_field", "",
		},
		"a long pointer to U+0000": {
			workspaceDirectoryPath, directoryWith(`{"` + strings.Repeat("<", large-100) + `":"\u0000"}`), 1, false,
			"/credentials nul", "/credentials nul",
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := target.post(test.path, test.body)
		runtime.ReadMemStats(&after)
		allocated, bound := after.TotalAlloc-before.TotalAlloc, uint64(8<<20+128*len(test.body))
		if allocated > bound {
			t.Errorf("%s: %d KiB were allocated for %d bytes, want at most %d", name, allocated>>10, len(test.body), bound>>10)
		}
		if err := got.check(test.path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
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
		if more := strings.Contains(problem.Detail, "more violations than the"); more != test.isCut {
			t.Errorf("%s: detail is %q", name, problem.Detail)
		}
	}
}

// The bound is on the violations, not on the request.
func TestLargeListIsAccepted(t *testing.T) {
	t.Parallel()
	h := start(t)
	list := `"property_mappings":[` + strings.Repeat(`"`+flow+`",`, 19_999) + `"` + flow + `"`
	record := h.post(t, oauth2Path, oauth2With(list+"]")).record(t)
	if mappings, ok := record["property_mappings"].([]any); !ok || len(mappings) != 20_000 {
		t.Errorf("%d mappings come back", len(mappings))
	}
	h.post(t, oauth2Path, oauth2With(list+`,"x"]`)).wantEntries(t, "/property_mappings/20000 invalid_uuid")
}
