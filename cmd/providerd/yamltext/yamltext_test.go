package yamltext_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"example.com/providerd/cmd/providerd/yamltext"
)

func TestElement(t *testing.T) {
	t.Parallel()
	const value = `{"name":"a: b","uris":"https://a.example.com/\nhttps://b.example.com/\n","yes":"true","one":1.10,` +
		`"large":123456789012345678901234567890,"list":[],"inner":{"b":null,"a":[true,"é"]},"empty":{}}`
	const want = `- name: 'a: b'
  uris: |
    https://a.example.com/
    https://b.example.com/
  yes: 'true'
  one: 1.10
  large: 123456789012345678901234567890
  list: []
  inner:
    b: null
    a:
    - true
    - é
  empty: {}
`
	got, err := yamltext.Element([]byte(value), yamltext.Same)
	if err != nil || string(got) != want {
		t.Errorf("%v:\n%s", err, got)
	}
	alone, err := yamltext.Document([]byte(`{"a":{"b":1}}`), yamltext.Same)
	if err != nil || string(alone) != "a:\n  b: 1\n" {
		t.Errorf("%v:\n%s", err, alone)
	}
	for _, broken := range []string{"", "{", `{"a":`, `{"a":1,"a":2}`, "[1", "nul"} {
		if got, err := yamltext.Element([]byte(broken), yamltext.Same); err == nil {
			t.Errorf("%s became %s", broken, got)
		}
	}
}

// Whatever the strings, YAML reads two elements in a row as a list of them.
func TestAnyJSONIsReadAsYAML(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := map[string]any{}
		for range 2 {
			value[text().Draw(t, "name")] = text().Draw(t, "text")
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		element, err := yamltext.Element(encoded, yamltext.Same)
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(string(element), func(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' && r != '\t' }) {
			t.Fatalf("%q is not all visible", element)
		}
		var read []map[string]any
		if err := yaml.Load(append(element, element...), &read); err != nil {
			t.Fatalf("%v: %s", err, element)
		}
		got, err := json.Marshal(read)
		if err != nil {
			t.Fatal(err)
		}
		want := jsontext.Value("[" + string(encoded) + "," + string(encoded) + "]")
		if string(got) != string(want) {
			t.Fatalf("%s became %s by way of %s", want, got, element)
		}
	})
}

// text has what means something in YAML.
func text() *rapid.Generator[string] {
	words := rapid.SliceOfN(rapid.SampledFrom([]string{
		" ", "\n", "\r", "\t", "a", "é", "#", ":", "- ", "'", `"`, "\\", "|", ">", "*", "&", "!", "%", "@", "`", "{", "}", "[",
		"]", ",", "?", "~", "null", "yes", "1", ".", "e", "<<", "=", "---", "...", "\x00", "\x1b", "\u0085", "\u2028", "\ufeff", "😀",
		"\u009b", "\x7f", "\u202e", "\u2066", "\u200b", "\U000e0001", "\\u202e",
		"2026-01-31", "0x1f",
	}), 0, 6)
	return rapid.OneOf(rapid.String(), rapid.Map(words, func(words []string) string { return strings.Join(words, "") }))
}
