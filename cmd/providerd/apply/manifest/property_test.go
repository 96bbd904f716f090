package manifest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/store/storetest/processtest"
)

// JSON is YAML, so any object must be read unchanged, except for ${ references.
func TestAnyJSONComesBack(t *testing.T) {
	t.Parallel()
	known := kinds(t)
	rapid.Check(t, func(t *rapid.T) {
		sent := rapid.MapOf(anyName(), anyJSON(4)).Draw(t, "body")
		want := processtest.Try(json.Marshal(sent)).Must(t)
		// U+0085 ends a line in YAML, and so cannot stand in a string as it is.
		escaped := strings.NewReplacer("${", "$${", "\u0085", `\u0085`).Replace(string(want))
		if rapid.Bool().Draw(t, "is ASCII") {
			escaped = inASCII(escaped)
		}
		text := `{"oauth2": [` + escaped + `]}`
		read := readOne(text, known)
		processtest.Require(t, len(read.Problems) == 0 && len(read.Entries) == 1, "%q: faults are %v", text, read.Problems)
		if got, expected := canonical(t, read.Entries[0].Body), canonical(t, want); got != expected {
			t.Fatalf("%s became %s", expected, got)
		}
	})
}

// inASCII escapes other characters as UTF-16, as Python does.
func inASCII(text string) string {
	var escaped strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		if unit < utf8.RuneSelf {
			escaped.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&escaped, `\u%04x`, unit)
		}
	}
	return escaped.String()
}

// Written manifests are visible and read unchanged, except for references to the environment.
func TestWrittenEntriesComeBack(t *testing.T) {
	t.Parallel()
	known := kinds(t)
	rapid.Check(t, func(t *rapid.T) {
		var file bytes.Buffer
		writer := manifest.Writer{Out: &file}
		var want []string
		for number := range rapid.IntRange(0, 3).Draw(t, "entries") {
			body := rapid.MapOf(anyName(), anyJSON(4)).Draw(t, "body")
			body["id"], body["ref"] = fmt.Sprint("oauth2-", number), "${SECRET}"
			body["literal"] = map[string]any{"${SECRET}": "${SECRET}"}
			text, err := json.Marshal(body)
			processtest.Must(t, err)
			err = writer.Entry("oauth2", text, "/ref")
			processtest.Must(t, err)
			delete(body, "id")
			body["ref"] = "s3cret"
			text, err = json.Marshal(body)
			processtest.Must(t, err)
			want = append(want, canonical(t, text))
		}
		processtest.Must(t, writer.Close("oauth2"))
		if strings.ContainsFunc(file.String(), func(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' && r != '\t' }) {
			t.Fatalf("%q is not all visible", &file)
		}
		read := readOne(file.String(), known)
		var got []string
		for _, entry := range read.Entries {
			got = append(got, canonical(t, entry.Body))
		}
		processtest.Require(t, len(read.Problems) == 0 && slices.Equal(got, want),
			"%v: %s became %s by way of %s", read.Problems, want, got, &file)
	})
}

func canonical(t *rapid.T, text []byte) string {
	value := jsontext.Value(text)
	processtest.Must(t, value.Canonicalize(jsontext.CanonicalizeRawFloats(false)))
	return string(value)
}

// anyName leaves out the names that mean something else in a manifest, and those that stand in values alone.
func anyName() *rapid.Generator[string] {
	return rapid.StringN(0, 200, 500).Filter(func(name string) bool {
		return name != "id" && name != "<<" && !strings.Contains(name, "${")
	})
}

// yamlText has what means something in YAML, and what it cannot show.
func yamlText() *rapid.Generator[string] {
	words := rapid.SliceOfN(rapid.SampledFrom([]string{
		" ", "\n", "\r", "\t", "a", "é", "#", ":", "- ", "'", `"`, "\\", "|", ">", "*", "&", "!", "%", "@", "`", "{", "}", "[",
		"]", ",", "?", "~", "null", "yes", "1", ".", "e", "<<", "=", "---", "...", "\x00", "\x1b", "\u0085", "\u2028", "\ufeff", "😀",
		"\u009b", "\x7f", "\u202e", "\u2066", "\u200b", "\U000e0001", "\\u202e", "2026-01-31", "0x1f",
	}), 0, 6)
	return rapid.Map(words, func(words []string) string { return strings.Join(words, "") })
}

func anyJSON(depth int) *rapid.Generator[any] {
	generators := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Float64Range(-1e300, 1e300).AsAny(),
		rapid.String().AsAny(), rapid.StringMatching(`\$*\{?[a-z]*\}?`).AsAny(), yamlText().AsAny(),
	}
	if depth > 0 {
		inner := rapid.Deferred(func() *rapid.Generator[any] { return anyJSON(depth - 1) })
		generators = append(generators, rapid.SliceOfN(inner, 0, 4).AsAny(),
			rapid.MapOfN(anyName(), inner, 0, 4).AsAny())
	}
	return rapid.OneOf(generators...)
}

// Whatever a file holds, it is read to its end, and what is returned can be relied on.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"oauth2:\n- name: a\n  authorization_flow: ${A}\n", "oauth2: [&a {<<: [*a, {b: c}]}]", "a: b\n---\n[c]\n...\n",
		"workspace_directory: [{credentials: {a: [1, 0x1, ~, .nan, !x y]}, id: b}]", "%YAML 1.2\n---\n? a\n: b\n", "\xff\xfea",
	} {
		f.Add([]byte(seed))
	}
	known := kinds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		read := readOne(string(text), known)
		ids := map[string]bool{}
		for _, entry := range read.Entries {
			body := jsontext.Value(entry.Body)
			processtest.Expect(t, body.Kind() == '{' && body.IsValid(), "body is %s", body)
			processtest.Expect(t, entry.At("/no/such/value").Line >= 1, "entry %s has no place", entry.ID)
			processtest.Expect(t, !ids[entry.ID] || entry.ID == "" || len(read.Problems) != 0,
				"two entries have the id %q", entry.ID)
			ids[entry.ID] = true
		}
		for _, fault := range read.Problems {
			processtest.Expect(t, fault.Detail != "", "a fault says nothing")
		}
	})
}
