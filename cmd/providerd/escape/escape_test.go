package escape_test

import (
	"encoding/json"
	"testing"

	"go.yaml.in/yaml/v4"

	"example.com/providerd/cmd/providerd/escape"
)

func TestHiddenCharactersAreEscaped(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ json, yaml string }{
		"é😀\u00a0\n\t":          {"é😀\u00a0\n\t", "é😀\u00a0\n\t"},
		"\x7f\u009b\u2028":      {`\u007f\u009b\u2028`, `\u007f\u009b\u2028`},
		"a\u202eb\u2066\u200bc": {`a\u202eb\u2066\u200bc`, `a\u202eb\u2066\u200bc`},
		"\U000e0001":            {`\udb40\udc01`, `\U000e0001`},
		"a\xffb\xe2\x80":        {`a\ufffdb\ufffd\ufffd`, `a\ufffdb\ufffd\ufffd`},
	} {
		if got := string(escape.JSON([]byte(text))); got != want.json {
			t.Errorf("%+q is %s in JSON, want %s", text, got, want.json)
		}
		if got := string(escape.YAML([]byte(text))); got != want.yaml {
			t.Errorf("%+q is %s in YAML, want %s", text, got, want.yaml)
		}
	}
	const text = "a\u202e\u009b\U000e0001"
	var fromJSON, fromYAML string
	if err := json.Unmarshal(escape.JSON([]byte(`"`+text+`"`)), &fromJSON); err != nil || fromJSON != text {
		t.Errorf("JSON is read as %+q: %v", fromJSON, err)
	}
	if err := yaml.Load(escape.YAML([]byte(`"`+text+`"`)), &fromYAML); err != nil || fromYAML != text {
		t.Errorf("YAML is read as %+q: %v", fromYAML, err)
	}
}
