package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// FieldDiff is a field that a change gives another value. Secrets are masked.
type FieldDiff struct {
	Field string          `json:"field"`
	Old   json.RawMessage `json:"old"`
	New   json.RawMessage `json:"new"`
}

// Diff returns the fields whose values differ between two records of a kind, in the order of the contract. The values
// of the secret field are masked.
func (k Kind) Diff(document *contract.Document, before, after store.Record) ([]FieldDiff, error) {
	was, err := contract.Fields(before)
	if err != nil {
		return nil, err
	}
	is, err := contract.Fields(after)
	if err != nil {
		return nil, err
	}
	operation, _ := document.Operation(k.Operation)
	var diffs []FieldDiff
	for _, name := range operation.FieldNames() {
		if isSame(was[name], is[name]) {
			continue
		}
		diff := FieldDiff{Field: name, Old: was[name], New: is[name]}
		if name == k.secret {
			diff.Old, diff.New = masked(diff.Old), masked(diff.New)
		}
		diffs = append(diffs, diff)
	}
	return diffs, nil
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

// Undo returns the command that gives the fields of a provider their old values. Secrets are in files.
func (k Kind) Undo(pk int64, changes []FieldDiff) string {
	words := []string{fmt.Sprintf("providerd provider update %d", pk)}
	for _, change := range changes {
		words = append(words, k.item(change.Field, change.Old))
	}
	return strings.Join(words, " ")
}

// item returns the argument that sets a field, quoted for a POSIX shell (POSIX.1-2017, Shell Command Language, section
// 2.2.2).
func (k Kind) item(field string, value json.RawMessage) string {
	quoted := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
	var text *string
	isText := json.Unmarshal(value, &text) == nil && text != nil
	switch {
	case field == k.secret && k.Name == string(store.KindOAuth2):
		return field + "=@FILE"
	case field == k.secret:
		return field + ":=@FILE"
	case isText && !strings.HasPrefix(*text, "@") && !strings.ContainsFunc(*text, unicode.IsControl):
		return field + "=" + quoted(*text)
	default:
		return field + ":=" + quoted(string(value))
	}
}
