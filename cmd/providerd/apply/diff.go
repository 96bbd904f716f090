package apply

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/contract"
)

// FieldDiff is a field that a change gives another value. Secrets are masked.
type FieldDiff struct {
	Field string          `json:"field"`
	Old   json.RawMessage `json:"old"`
	New   json.RawMessage `json:"new"`
}

// Diff returns the fields whose values differ, in the order of names. The values of the secret field are masked.
func Diff(names []string, secret string, before, after map[string]json.RawMessage) []FieldDiff {
	var diffs []FieldDiff
	for _, name := range names {
		if isSame(before[name], after[name]) {
			continue
		}
		diff := FieldDiff{Field: name, Old: before[name], New: after[name]}
		if name == secret {
			diff.Old, diff.New = masked(diff.Old), masked(diff.New)
		}
		diffs = append(diffs, diff)
	}
	return diffs
}

// isSame reports whether two values differ in notation at most. Numbers keep their digits.
func isSame(a, b json.RawMessage) bool {
	canonical := func(value json.RawMessage) []byte {
		text := jsontext.Value(bytes.Clone(value))
		if text.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)) != nil {
			return value
		}
		return text
	}
	return bytes.Equal(a, b) || bytes.Equal(canonical(a), canonical(b))
}

// masked returns the mask instead of a secret, and empty secrets unchanged.
func masked(secret json.RawMessage) json.RawMessage {
	if string(secret) == `""` {
		return secret
	}
	return json.RawMessage(`"` + contract.Mask + `"`)
}

// Lines returns the lines of a plan: the old and the new value or, for a list or redirect_uris, what is removed and
// added.
func (d FieldDiff) Lines() []string {
	before, after := elements(d.Old), elements(d.New)
	if d.Field == "redirect_uris" {
		before, after = strings.Fields(console.Unquote(d.Old)), strings.Fields(console.Unquote(d.New))
	} else if before == nil || after == nil {
		return []string{d.Field + ": " + string(d.Old) + " -> " + string(d.New)}
	}
	lines := []string{d.Field + ":"}
	for _, element := range before {
		if !slices.Contains(after, element) {
			lines = append(lines, "  - "+element)
		}
	}
	for _, element := range after {
		if !slices.Contains(before, element) {
			lines = append(lines, "  + "+element)
		}
	}
	if len(lines) == 1 {
		lines[0] += " the same values in another order or number"
	}
	return lines
}

// elements returns the elements of a list of texts; nil for other values.
func elements(value json.RawMessage) []string {
	var list []string
	if json.Unmarshal(value, &list) != nil {
		return nil
	}
	return list
}
