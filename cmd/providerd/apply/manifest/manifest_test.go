package manifest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/server/contract"
	"example.com/providerd/store/storetest/processtest"
)

func kinds(t testing.TB) []manifest.Kind {
	t.Helper()
	contract, err := contract.Load(t.Context())
	processtest.Must(t, err)
	return []manifest.Kind{
		{Name: "oauth2", Schema: contract.RequestSchema("providers_oauth2_create")},
		{Name: "workspace_directory", Schema: contract.RequestSchema("providers_workspace_directory_create")},
	}
}

// readOne reads a manifest that can refer to some variables and files.
func readOne(text string, known []manifest.Kind) manifest.Manifest {
	variables := map[string]string{
		"SECRET": "s3cret", "EMPTY": "", "YES": "true", "OBJECT": `{"n": 9007199254740993}`, "NEST": "${SECRET}",
		"_1": "underscore", "LATIN1": "\xe9",
	}
	files := fstest.MapFS{
		"secret": {Data: []byte("s3cret\n")}, "lines": {Data: []byte("a\r\n\r\n")}, "empty": {Data: []byte("\n")},
		"key.json": {Data: []byte(`{"n": 9007199254740993}` + "\n")}, "latin1": {Data: []byte("\xe9")},
	}
	lookUp := func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}
	return manifest.Read([]manifest.File{{Name: "a.yaml", Text: []byte(text)}}, known, manifest.Values{
		Variable: lookUp, File: files.ReadFile,
	})
}

func TestValuesBecomeJSON(t *testing.T) {
	t.Parallel()
	known := kinds(t)
	for text, want := range map[string]string{
		`{a: yes, b: on, c: true, d: FALSE}`:           `{"a":"yes","b":"on","c":true,"d":false}`,
		`{a: ~, b: null, c: , d: ""}`:                  `{"a":null,"b":null,"c":null,"d":""}`,
		`{a: 9007199254740993, b: 1.10, c: 1e5}`:       `{"a":9007199254740993,"b":1.10,"c":1e5}`,
		`{a: 1e400, b: "1e400", c: !!str 1e400}`:       `{"a":1e400,"b":"1e400","c":"1e400"}`,
		`{a: -0, b: !!str 5, c: "5", d: 2026-01-31}`:   `{"a":-0,"b":"5","c":"5","d":"2026-01-31"}`,
		`{1: a, true: b, null: c, <: d}`:               `{"1":"a","<":"d","null":"c","true":"b"}`,
		`{a: "$${SECRET}", b: $$SECRET, c: "$$${_1}"}`: `{"a":"${SECRET}","b":"$$SECRET","c":"$${_1}"}`,
		`{a: "${NEST}", b: "$", c: "}"}`:               `{"a":"${SECRET}","b":"$","c":"}"}`,
		`{credentials: "${OBJECT}", scopes: "${OBJECT}"}`: `{"credentials":{"n":9007199254740993},` +
			`"scopes":"{\"n\": 9007199254740993}"}`,
		`{credentials: {key: "${OBJECT}"}}`:                           `{"credentials":{"key":"{\"n\": 9007199254740993}"}}`,
		`{exclude_users_service_account: "${YES}", scopes: "${YES}"}`: `{"exclude_users_service_account":true,"scopes":"true"}`,
		`{a: "${file:secret}", b: "<${file:./lines}>"}`:               `{"a":"s3cret","b":"<a\r\n>"}`,
		`{credentials: "${file:key.json}", scopes: "${file:key.json}"}`: `{"credentials":{"n":9007199254740993},` +
			`"scopes":"{\"n\": 9007199254740993}"}`,
		`{a: &a [1], b: *a}`:                                             `{"a":[1],"b":[1]}`,
		`{a: &a {x: 1, y: 2}, b: {<<: *a, x: 3}}`:                        `{"a":{"x":1,"y":2},"b":{"x":3,"y":2}}`,
		`{a: &a {x: 1}, b: &b {x: 2, y: 2}, <<: [*a, *b, {y: 3, z: 3}]}`: `{"a":{"x":1},"b":{"x":2,"y":2},"x":1,"y":2,"z":3}`,
	} {
		read := readOne("workspace_directory:\n- "+text, known)
		if len(read.Problems) > 0 || len(read.Entries) != 1 {
			t.Errorf("%s: %v", text, read)
			continue
		}
		if got := strings.TrimSpace(string(read.Entries[0].Body)); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
}

func TestEntriesOfAllDocumentsAndKinds(t *testing.T) {
	t.Parallel()
	read := readOne(`
x-defaults: &defaults {authorization_flow: f, id: never}
oauth2: &list
  - name: a
    id: "${SECRET}-id"
    client_id: c
  - <<: *defaults
    id: b
workspace_directory: []
---
---
{}
---
x-other: null
---
# another one
workspace_directory: [{name: c}, {id: d}]
oauth2: []
...
`, kinds(t))
	if len(read.Problems) > 0 {
		t.Fatal(read.Problems)
	}
	var got []string
	for _, entry := range read.Entries {
		got = append(got, fmt.Sprintf("%s/%s at %v", entry.Kind, entry.ID, entry.At("")))
	}
	want := "oauth2/s3cret-id at a.yaml:4:5, oauth2/b at a.yaml:7:5, workspace_directory/c at a.yaml:17:23, workspace_directory/d at a.yaml:17:34"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("entries are\n%s, want\n%s", text, want)
	}
	first := read.Entries[0]
	for pointer, want := range map[string]manifest.Position{
		"/name": {"a.yaml", 4, 11}, "/client_id": {"a.yaml", 6, 16}, "/authorization_flow": {"a.yaml", 4, 5},
		"/redirect_uris/0": {"a.yaml", 4, 5},
	} {
		if got := first.At(pointer); got != want {
			t.Errorf("%s is at %v, want %v", pointer, got, want)
		}
	}
}

func TestFaultsSayWhereAndWhat(t *testing.T) {
	t.Parallel()
	known := kinds(t)
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	for text, want := range map[string][]string{
		"":                                    {"0:0 is empty"},
		"# nothing\n---\n":                    {"0:0 is empty; write oauth2: [] if it should list no providers"},
		"null":                                {"0:0 is empty; write oauth2: [] if"},
		"{}\n---\n---\n":                      {"0:0 has no list of providers; write oauth2: [] if it should list no providers"},
		"$schema: a\nx-a: &a [{name: a}]":     {"0:0 has no list of providers; write oauth2: [] if"},
		"---\n# x\n---\noauth2:\n# - name: a": {"4:1 oauth2 is empty; write oauth2: [] if it should list no providers"},
		"{\"oauth2\": [], \"workspace_directory\": null}": {
			"1:16 workspace_directory is empty; write workspace_directory: [] if it should list no providers",
		},
		"x-a: &a ~\noauth2: *a\n---\noauth2: []": {"2:1 oauth2 is empty; write oauth2: [] if"},
		"- a":                                    {"1:1 must be a mapping from oauth2 and workspace_directory"},
		"oauth2: []\noauth2: []":                 {"2:1 oauth2 occurs twice"},
		"oauth2: {name: a}":                      {"1:9 oauth2 must be a list"},
		"oauth2: [a, ~]":                         {"1:10 oauth2 must be a mapping with the fields", "1:13 oauth2 must be a mapping"},
		"oauth2: [{name: a, was: 7}]":            {"1:25 oauth2/a was must be a string"},
		"oauth2: [{name: a, was: a}]":            {"1:10 oauth2/a `was` is already the id or a former id of the entry in a.yaml:1:10"},
		"oauth2: [{name: a}, {id: b, was: a}]":   {"1:21 oauth2/b `was` is already the id or a former id of the entry in a.yaml:1:10"},
		"oauth2: [{id: a, was: c}, {id: b, was: c}]": {
			"1:27 oauth2/b `was` is already the id or a former id of the entry in a.yaml:1:10",
		},
		"oauth2: [{name: a, name: b}]":           {"1:20 oauth2/a `name` appears twice; remove one"},
		"oauth2: [{id: 7}, {id: ' '}]":           {"1:15 oauth2 id must be a string", "1:24 oauth2 id must not be blank"},
		"oauth2: [{id: \"${EMPTY}\", name: a}]":  {"1:15 oauth2/a id refers to the variable EMPTY, which is empty"},
		"oauth2: [{name: a, b: '<${EMPTY}>'}]":   {"1:23 oauth2/a `b` refers to the variable EMPTY, which is empty"},
		"oauth2: [{a: !!bool yes, b: !!null x}]": {"1:14 oauth2 `a` has a tag", "1:29 oauth2 `b` has a tag"},
		"oauth2: [{a: !!seq [], b: !!map {}}]":   {"1:14 oauth2 `a` has a tag", "1:27 oauth2 `b` has a tag"},
		"oauth2: [{? [a] : b}]":                  {"1:13 oauth2 the name of a member must be a string"},
		"oauth2: [{a: 0x1f, b: .inf}]":           {"1:14 oauth2 `a` is not a JSON number", "1:23 oauth2 `b` is not a JSON number"},
		"oauth2: [{a: 1_0, b: 007}]":             {"1:14 oauth2 `a` is not a JSON number", "1:22 oauth2 `b` is not a JSON number"},
		"oauth2: [{a: !Ref x}]":                  {"1:14 oauth2 `a` has a tag"},
		"oauth2: [{a: !!binary eA==}]":           {"1:14 oauth2 `a` has a tag"},
		"oauth2: [{a: !!set {x}}]":               {"1:14 oauth2 `a` has a tag"},
		"oauth2: [{a: " + deep + "}]":            {"1:77 oauth2 `/a" + strings.Repeat("/0", 63) + "` is nested deeper than 64"},
		"oauth2: [{a: '${}'}]":                   {"1:14 oauth2 `a` contains a ${ that is not part"},
		"oauth2: [{a: '${A B}'}]":                {"1:14 oauth2 `a` contains a ${ that is not part"},
		"oauth2: [{a: '${1}'}]":                  {"1:14 oauth2 `a` contains a ${ that is not part"},
		"oauth2: [{a: '${LATIN1}'}]":             {"1:14 oauth2 `a` refers to the variable LATIN1, which is not UTF-8; encode it in UTF-8"},
		"oauth2: [{a: '${file:}'}]":              {"1:14 oauth2 `a` contains a ${ that is not part"},
		"oauth2: [{a: '${file:empty}'}]":         {"1:14 oauth2 `a` refers to the file empty, which is empty"},
		"oauth2: [{a: '${file:latin1}'}]":        {"1:14 oauth2 `a` refers to the file latin1, which is not UTF-8; encode it in UTF-8"},
		"oauth2: [{jwks_sources: '${file:lines}'}]": {
			"1:25 oauth2 `jwks_sources` refers to file:lines, whose value must be JSON",
		},
		"oauth2: [{jwks_sources: '${SECRET}'}]": {
			"1:25 oauth2 `jwks_sources` refers to SECRET, whose value must be JSON",
		},
		"oauth2: [{<<: 5}, {<<: [a]}]":     {"1:15 oauth2 << must be", "1:25 oauth2 << must be"},
		"oauth2: [&a {b: *a}]":             {"1:10 oauth2 `" + strings.Repeat("/b", 64) + "` is nested deeper than 64"},
		"oauth2: [&a {<<: *a}]":            {"merges mappings nested deeper"},
		"oauth2: [{name: a}":               {"is not valid YAML: "},
		"oauth2:\n\t- a":                   {"2:1 is not valid YAML: indent with spaces, not tabs"},
		`oauth2: [{name: "\ud83d\ude00"}]`: {"1:20 is not valid YAML: found invalid Unicode character escape code; write the character itself"},
		"oauth2:\n- é: a\n  \tb: c":        {"3:3 is not valid YAML: indent with spaces, not tabs"},
		"oauth2:\n- name: *secret":         {"2:9 refers to an unknown anchor"},
		"oauth2:\n- name: é\xff":           {"2:10 is not valid YAML: invalid leading UTF-8 octet"},
		"oauth2:\n<<<<<<< a\n- {}\n":       {"2:1 is a conflict marker of git; resolve the merge"},
		"oauth2:\n- name: a\x01":           {"2:10 is not valid YAML: control characters"},
		"oauth2: [{name: a, b: !X 1}]\n---\n}": {
			"1:23 oauth2/a `b` has a tag", "3:1 is not valid YAML",
		},
	} {
		read := readOne(text, known)
		if len(read.Problems) != len(want) {
			t.Errorf("%s: faults are %v, want %d", text, read.Problems, len(want))
			continue
		}
		for i, fault := range read.Problems {
			owner := strings.TrimSuffix(fault.Kind+"/"+fault.ID, "/")
			got := strings.Join(strings.Fields(fmt.Sprintf("%d:%d %s %s", fault.Line, fault.Column, owner, fault.Detail)), " ")
			if !strings.Contains(got, want[i]) {
				t.Errorf("%s: fault %d is %q, want %q", text, i, got, want[i])
			}
			processtest.Expect(t, !strings.Contains(got, "secret") && !strings.Contains(got, "s3cret"),
				"%q repeats a value", got)
		}
	}
}
